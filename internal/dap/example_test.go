package dap_test

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/google/go-dap"

	server "wpptrace/internal/dap"
	"wpptrace/query/querytest"
)

// A client launches what the server has, and goes away.
func ExampleServer_Serve() {
	s := &server.Server{Snapshot: querytest.Values()} // as store.ReadFile returns it
	const launch = `{"seq":1,"type":"request","command":"launch"}`
	var out strings.Builder
	err := s.Serve(strings.NewReader(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(launch),
		launch)), &out)
	answer, _ := dap.ReadProtocolMessage(bufio.NewReader(strings.NewReader(out.String())))
	fmt.Println(answer.(*dap.LaunchResponse).Success, err)
	// Output: true <nil>
}

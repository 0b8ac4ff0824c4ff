package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// A status line is shown where stderr is a terminal, and taken away at the end.
func TestStatusLine(t *testing.T) {
	s := testenv.StartServer(t)
	if _, err := fmt.Fprintln(s.In, 1<<40); err != nil {
		// it never answers: the test's end is its end
		t.Fatal(err)
	}
	command := "wpptrace -p " + strconv.Itoa(s.PID()) + " -d 2500ms --max-slowdown 0 -o " +
		t.TempDir() + "/x.wpp"
	out, err := exec.Command("script", "-qec", command, "/dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{" paths/s  ring ", " rules  ratio ", "  lost 0", "\r\x1b[K"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if _, after, _ := strings.Cut(text, "wpptrace: 2.5s are over"); strings.Contains(after,
		"paths/s") {
		t.Errorf("the line stays: %q", text)
	}
	s.IsClean()
}

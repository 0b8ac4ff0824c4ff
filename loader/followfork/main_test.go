package followfork_test

import (
	"fmt"
	"os"
	"testing"

	"wpptrace/loader/guard"
)

// TestMain lets the test binary, started again, be a guard.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == guard.Command {
		if err := guard.Serve(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

package guard

import (
	"os"
	"strings"
	"testing"

	"wpptrace/loader/target"
)

// TestMain lets the test binary, started again as a guard, die at once.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// TestGuardThatDiesAtOnce: who starts it is told so, and does not wait for ever.
func TestGuardThatDiesAtOnce(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if g, err := Start(p); err == nil || !strings.Contains(err.Error(), "it ended at once") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, %v", g, err)
	}
}

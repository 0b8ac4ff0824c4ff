package guard

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/target"
)

// TestMain lets the test binary, started again as a guard, die at once.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args, arguments) {
		os.Exit(3)
	}
	Main()
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

// TestProgramWithoutGuard: a program that is no guard when it is started again starts none. It
// would start itself without end.
func TestProgramWithoutGuard(t *testing.T) {
	isServed.Store(false)
	defer isServed.Store(true)
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if g, err := Start(p); !errors.Is(err, ErrNotServed) {
		t.Errorf("got %v, %v", g, err)
	}
}

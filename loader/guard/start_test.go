package guard

import (
	"errors"
	"net"
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

// TestGuardThatDiesAtOnce: who starts it gets an error, and does not wait for ever.
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

// TestConnectionOfAnotherKind: a guard that somebody starts with a TCP socket refuses it. It
// panicked.
func TestConnectionOfAnotherKind(t *testing.T) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	checkRefused(t, f)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if f, err = c.(*net.TCPConn).File(); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, f)
}

// checkRefused fails the test unless connection gives an error for a file.
func checkRefused(t *testing.T, f *os.File) {
	t.Helper()
	if c, err := connection(f); err == nil || c != nil {
		t.Errorf("%v, %v; want an error", c, err)
	}
}

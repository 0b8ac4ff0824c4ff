package kerneltests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/loader/guard"
)

// What is made once for all tests: wpptrace, and a directory, which goes with the last of them.
var (
	tracer *exact.Tracer
	work   string
)

// TestMain lets the test binary, started again, be the guard of a session.
func TestMain(m *testing.M) {
	guard.Main()
	if dir := os.Getenv("WPPTRACE_BUILD"); dir != "" {
		if err := buildAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "kernel-tests"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	if built() != "" {
		tracer = exact.NewTracer(filepath.Join(built(), "wpptrace"))
	} else if tracer, err = exact.Build(context.Background(), work); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// matrix says that every program is to be run in every flavour, however many steps it takes.
func matrix() bool { return os.Getenv("WPPTRACE_MATRIX") != "" || soak() }

// soak says that besides, the programs are to be run on their longest inputs.
func soak() bool { return os.Getenv("WPPTRACE_SOAK") != "" }

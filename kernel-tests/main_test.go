package kerneltests

import (
	"context"
	"fmt"
	"os"
	"testing"

	"wpptrace/kernel-tests/exact"
)

// tracer is wpptrace, built once for all tests.
var tracer *exact.Tracer

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kernel-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if tracer, err = exact.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// matrix says that every program is to be run in every flavour, however many steps it takes.
func matrix() bool { return os.Getenv("WPPTRACE_MATRIX") != "" || soak() }

// soak says that besides, the programs are to be run on their longest inputs.
func soak() bool { return os.Getenv("WPPTRACE_SOAK") != "" }

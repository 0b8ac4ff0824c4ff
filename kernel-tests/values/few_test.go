package valuetests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// TestValuesOfFewRoutines: what callers that are not traced pass to routines without a branch, and
// where these return to, is known by one hit of each; what malloc has returned by another one, or
// where the caller is traced.
func TestValuesOfFewRoutines(t *testing.T) {
	for _, run := range []struct {
		opt   string
		flags []string
		least float64
	}{
		{"-O0", []string{"-F", "^(make|count)$", "--complete"}, 1},
		{"-O0", []string{"-F", "."}, 0.7},
		{"-O1", []string{"-F", "^leaf$"}, 1},
		{"-O2", []string{"-F", "^(leaf|make|count)$"}, 0.6},
	} {
		target := exact.Target{Path: compile(t, "few.c", run.opt), Env: zoo.Env(),
			FixedAddresses: true}
		isKnown(t, prove(t, target, 0, run.flags...), run.least)
	}
}

// TestValuesBehindCatch: what a routine has in its frame is known again once it has caught an
// exception, also where no register holds it.
func TestValuesBehindCatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "caught")
	out, err := exec.CommandContext(t.Context(), "g++", "-O0", "-o", path,
		"testdata/caught.cc").CombinedOutput()
	if err != nil {
		t.Fatalf("g++: %v: %s", err, out)
	}
	target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
	isKnown(t, prove(t, target, 0, "-F", "."), 0.99)
}

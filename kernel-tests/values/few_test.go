package valuetests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// TestValuesOfFewRoutines: what callers that are not traced pass to routines without a branch, and
// where these return to, is known by one hit of each; what malloc has returned by another one.
func TestValuesOfFewRoutines(t *testing.T) {
	for opt, run := range map[string]struct {
		flags []string
		least float64
	}{
		"-O0": {[]string{"-F", "^(make|count)$", "--complete"}, 1},
		"-O1": {[]string{"-F", "^leaf$"}, 1},
		"-O2": {[]string{"-F", "^(leaf|make|count)$"}, 0.6},
	} {
		path := filepath.Join(t.TempDir(), "few")
		out, err := exec.CommandContext(t.Context(), "gcc", opt, "-o", path,
			"testdata/few.c").CombinedOutput()
		if err != nil {
			t.Fatalf("gcc: %v: %s", err, out)
		}
		target := exact.Target{Path: path, Env: zoo.Env(), FixedAddresses: true}
		isKnown(t, prove(t, target, 0, run.flags...), run.least)
	}
}

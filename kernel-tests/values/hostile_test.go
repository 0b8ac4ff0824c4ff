package valuetests

import (
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
)

// TestHostile: whatever changes memory that nothing shows, no value is wrong that is said to be
// known.
func TestHostile(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hostile")
	gcc := exec.CommandContext(t.Context(), "gcc", "-O2", "-o", program, "testdata/hostile.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	target := exact.Target{Path: program, Env: zoo.Env(), FixedAddresses: true}
	for _, only := range []string{"file", "absent", "fault", "jump", "fork",
		"jump|^on_fault"} {
		t.Run(only, func(t *testing.T) {
			report := prove(t, target, "-F", "^hostile_"+only)
			if report.Steps < 100 {
				t.Errorf("%d instructions", report.Steps)
			}
		})
	}
}

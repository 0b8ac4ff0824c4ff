package valuetests

import (
	"cmp"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

// TestHostile: whatever changes memory that nothing shows, no value is wrong that is said to be
// known; where memory is mapped twice, none that is confirmed.
func TestHostile(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hostile")
	gcc := exec.CommandContext(t.Context(), "gcc", "-O2", "-o", program, "testdata/hostile.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for only, least := range map[string]float64{ // that is known
		"alias": 0.1, "file": 0.98, "absent": 0.98, "fault": 0.65, "jump": 0.55, "fork": 0.95,
		"jump|fault": 0.65} {
		t.Run(only, func(t *testing.T) {
			t.Parallel()
			name, handler, _ := strings.Cut(only, "|")
			r, want := runs(t, exact.Target{Path: program, Args: []string{name}, Env: zoo.Env(),
				FixedAddresses: true}, 0, "-F",
				"^hostile_"+name+"|^on_"+cmp.Or(handler, "nothing"))
			if name == "alias" {
				forgetUnconfirmed(r.Streams)
			}
			report := compare(t, r.Streams, want, r.Routines)
			if isKnown(t, report, least); report.Steps < 100 {
				t.Errorf("%d instructions", report.Steps)
			}
		})
	}
}

// forgetUnconfirmed has values that are not confirmed be unknown.
func forgetUnconfirmed(streams []*truth.ValueStream) {
	forget := func(s *truth.Sureness) {
		if *s == truth.Unconfirmed {
			*s = truth.Unknown
		}
	}
	for _, stream := range streams {
		for i := range stream.Steps {
			step := &stream.Steps[i]
			for k := range step.Registers {
				forget(&step.Registers[k].Sureness)
			}
			for k := range step.Accesses {
				forget(&step.Accesses[k].Sureness)
			}
		}
	}
}

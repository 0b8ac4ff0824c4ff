package valuetests

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/query/valuereport"
)

// TestVariables: a program prints each value that its variables take. What is known of them is
// among these, in their order, and something is known of each.
func TestVariables(t *testing.T) {
	for _, flags := range []string{"-O0 -g", "-O2 -g", "-O2 -gdwarf-4"} {
		t.Run(flags, func(t *testing.T) {
			dir := t.TempDir()
			program, snapshot := filepath.Join(dir, "variables"), filepath.Join(dir, "v.wpp")
			arguments := append(strings.Fields(flags), "-o", program,
				filepath.Join("testdata", "variables.c"))
			gcc := exec.CommandContext(t.Context(), "gcc", arguments...)
			if out, err := gcc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			outcome, err := tracer.ValuesTo(t.Context(), snapshot, exact.Target{Path: program},
				"-q", "-F", ".")
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, snapshot)
			printed := map[string][]string{}
			for line := range strings.Lines(string(outcome.Stdout)) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				printed[name] = append(printed[name], value)
			}
			for name, want := range printed {
				var text bytes.Buffer
				if err := valuereport.WriteVariables(&text, s, name, nil); err != nil {
					t.Error(err)
					continue
				}
				checkTaken(t, name, text.String(), want)
			}
		})
	}
}

// checkTaken compares what WriteVariables has written of a variable with the values that it took: a
// value that is first in its activation may be what was in memory before.
func checkTaken(t *testing.T, name, text string, want []string) {
	t.Helper()
	instance, left, known := "", want, 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if f[0] == "INSTANCE" || f[5] == "-" {
			continue
		}
		value := strings.TrimSuffix(f[5], "?")
		switch i := slices.Index(left, value); {
		case i >= 0:
			left = left[i:] // it may be known again
			known++
		case f[0] == instance:
			t.Errorf("%s: %s is wrong, or not in its order\n%s", name, value, text)
		}
		instance = f[0]
	}
	if known == 0 {
		t.Errorf("%s: nothing is known of it\n%s", name, text)
	}
}

package recovery_test

import (
	"strings"
	"testing"
)

// A probe in a hardware transaction ended it, so that programs took their fallback for ever; and
// where the kernel left a restartable sequence, the record had what was behind it.
func TestWhatProbesInterruptIsLeftOut(t *testing.T) {
	const inTransaction, inSequence = "may run in a hardware transaction at ",
		"has a restartable sequence at "
	for _, c := range []struct {
		name, flags string // of a file in testdata/interrupted, and of the compiler
		want        map[string]string
	}{
		{"transaction", "-mrtm",
			map[string]string{"begins": inTransaction, "within": inTransaction, "behind": "",
				"instead": "", "main": ""}},
		{"pointer", "-mrtm", map[string]string{"begins": inTransaction, "within": inTransaction,
			"deeper": inTransaction, "direct": ""}},
		{"assembly", "-pie", map[string]string{
			"nests": inTransaction, "inner": inTransaction, "joins": inTransaction,
			"equal": inTransaction, "unequal": inTransaction, "other": inTransaction,
			"inside": inTransaction, "outside": "", "unsure": inTransaction, "gives": inTransaction,
			"dies":   "",
			"starts": inSequence, "resumes": inSequence, "main": "",
		}},
		{"sequence", "-pie", map[string]string{"restarts": inSequence, "behind": "", "main": ""}},
		{"sequence", "-no-pie",
			map[string]string{"restarts": inSequence, "behind": "", "main": ""}},
	} {
		p := recoverFile(t, compileFile(t, "interrupted/"+c.name+".c", "-O1", c.flags))
		for symbol, want := range c.want {
			if r := routine(t, p, symbol); !strings.HasPrefix(r.LeftOut, want) ||
				want == "" && r.LeftOut != "" {
				t.Errorf("%s: %s: left out: %q, want %q", c.flags, symbol, r.LeftOut, want)
			}
		}
	}
}

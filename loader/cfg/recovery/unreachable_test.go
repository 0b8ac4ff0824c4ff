package recovery_test

import (
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// beginEnd has what assembly begins and ends a routine with.
const beginEnd = `
#define BEGIN(name) ".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ",.-" #name "\n"
`

// Without symbols nobody knows whether what a routine jumps to with another frame is nothing or,
// folded with another's, a part of its own; but for what goes back to the other's rest.
func TestFoldedPartsStripped(t *testing.T) {
	path := compileFile(t, "parts/ends.c", "-O1")
	named := recoverFile(t, path)
	if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, b)
	}
	stripped := recoverFile(t, path)
	for symbol, leftOut := range map[string]bool{"other": false, "folded": true, "with": true} {
		if r := stripped.At(routine(t, named, symbol).Addr); strings.HasPrefix(r.LeftOut,
			"jumped to in its middle") != leftOut {
			t.Errorf("%s: left out: %q; since its cold part is jumped to: %v", symbol, r.LeftOut,
				leftOut)
		}
	}
}

// A conditional jump with a frame to a routine's end is never taken, and neither is such an entry
// of a switch's table; without a frame nobody knows.
func TestUnreachableEnds(t *testing.T) {
	p := recoverFile(t, compileFile(t, "parts/ends.c", "-O1"))
	for _, test := range []struct {
		symbol, leftOut string
		jumps           int // conditional ones that are never taken
		targets         int // of the switch
	}{
		{symbol: "padded", jumps: 1},
		{symbol: "adjacent", jumps: 1},
		{symbol: "bare", leftOut: "jumps to unknown code"},
		{symbol: "called"},
		{symbol: "unknown", leftOut: "jumps to unknown code"},
		{symbol: "cold", jumps: 1},
		{symbol: "other"},
		{symbol: "emptied", jumps: 1},
		{symbol: "entered"},
		{symbol: "enters", leftOut: "jumps out with a frame"},
		{symbol: "moved", jumps: 1},
		{symbol: "without", jumps: 1},
		{symbol: "with"},
		{symbol: "unsized", leftOut: "jumps out with a frame"},
		{symbol: "folds", leftOut: "jumps into the middle of another routine"},
		{symbol: "folded", leftOut: "jumped to in its middle"},
		{symbol: "meets", leftOut: "jumps into the middle of another routine"},
		{symbol: "goes_on", leftOut: "jumps to unknown code"},
		{symbol: "into_stub", leftOut: "jumps out with a frame"},
		{symbol: "into_named", leftOut: "jumps out with a frame"},
		{symbol: "last", jumps: 1},
		{symbol: "entries", jumps: 1, targets: 2},
		{symbol: "none", leftOut: "unresolved indirect jump"},
		{symbol: "frameless", leftOut: "unresolved indirect jump"},
	} {
		r := routine(t, p, test.symbol)
		if test.leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, test.leftOut) {
			t.Errorf("%s: left out: %q, want %q", test.symbol, r.LeftOut, test.leftOut)
		}
		if r.LeftOut != "" {
			continue
		}
		jumps, targets := 0, 0
		for b := range r.Blocks {
			switch bl := &r.Blocks[b]; bl.End {
			case cfg.Jcc:
				if bl.Succ[0] == bl.Succ[1] {
					jumps++
				}
			case cfg.Table:
				targets = len(bl.Succ)
				if bl.Table.Targets != nil {
					t.Errorf("%s: its switch's entries are %v, though some are never taken",
						test.symbol, bl.Table.Targets)
				}
			}
		}
		if jumps != test.jumps || targets != test.targets {
			t.Errorf("%s: %d jumps are never taken, want %d; the switch has %d targets, want %d",
				test.symbol, jumps, test.jumps, targets, test.targets)
		}
	}
}

// Parts that are jumped to with another frame than they begin with, and one that nothing leads to.
func TestPartsOfOthers(t *testing.T) {
	for _, test := range []struct {
		name            string // of a file in testdata/parts, which says why
		symbol, leftOut string
		flags           []string
	}{
		{"by-code-that-does-not-decode", "other", "jumped to in its middle", nil},
		{"that-returns-from-elsewhere", "folded", "jumped to in its middle", nil},
		{"that-begins-with-another-frame", "other", "jumped to in its middle", nil},
		{
			"that-calls-what-is-found-not-to-return", "folds",
			"jumps into the middle of another routine", nil,
		},
		{"that-is-long", "folded", "jumped to in its middle", nil},
		{
			"of-the-first-routine", "_start",
			"nothing leads to its part", []string{"-nostartfiles", "-fno-pie", "-no-pie"},
		},
	} {
		path := compileFile(t, "parts/"+test.name+".c", append(test.flags, "-O1")...)
		r := routine(t, recoverFile(t, path), test.symbol)
		if !strings.HasPrefix(r.LeftOut, test.leftOut) {
			t.Errorf("a part %s: %s is left out: %q, want %q",
				test.name, test.symbol, r.LeftOut, test.leftOut)
		}
	}
}

// A part that data leads into may be another's as well, but for one that goes back into its
// routine.
func TestPartThatDataLeadsTo(t *testing.T) {
	for ends, leftOut := range map[string]string{"jmp other_back": "",
		"call abort": "jumped to in its middle"} {
		path := compileFile(t, "parts/that-data-leads-to.c", "-O1", `-DENDS="`+ends+`"`)
		r := routine(t, recoverFile(t, path), "other")
		if !strings.HasPrefix(r.LeftOut, leftOut) || (leftOut == "") != (r.LeftOut == "") {
			t.Errorf("a part that ends by %s: its routine is left out: %q, want %q", ends,
				r.LeftOut, leftOut)
		}
	}
}

// A part with landing pads is no other routine's as well: what jumps there with another frame never
// does.
func TestPartWithLandingPadsIsNotFolded(t *testing.T) {
	for pads, leftOut := range map[string]bool{"": true,
		`.cfi_personality 3,__gcc_personality_v0\n.cfi_lsda 3,sites\n`: false} {
		path := compileFile(t, "parts/with-landing-pads.c",
			"-O1", "-w", "-fno-pie", "-no-pie", `-DPADS="`+pads+`"`)
		named := recoverFile(t, path)
		if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, b)
		}
		stripped := recoverFile(t, path)
		for _, symbol := range []string{"f", "g"} {
			if r := stripped.At(routine(t, named, symbol).Addr); (r.LeftOut != "") != leftOut {
				t.Errorf("pads %q: %s is left out: %q, want %v", pads, symbol, r.LeftOut, leftOut)
			}
		}
	}
}

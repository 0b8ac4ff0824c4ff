package recovery_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// What a mask leaves out of a table is never read: compilers fill such places with what they like.
func TestMaskedIndex(t *testing.T) {
	p := recoverFile(t, compileFile(t, "masked/even.c", "-O1"))
	for _, symbol := range []string{"masked", "compared"} {
		r := routine(t, p, symbol)
		if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
			t.Errorf("%s: %d switches, want 1; left out: %q", symbol, n, r.LeftOut)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 4 {
				t.Errorf("%s: %d ways, want 4", symbol, len(bl.Succ))
			}
		}
	}
}

// The bits of a sum of bits are those of either: the entries that none makes lead to the routine's
// end, as compilers have it, where nothing is reached by any other.
func TestIndexOfTwoMasks(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "masked/either.c", "-O1")), "either")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Fatalf("%d switches, want 1; left out: %q", n, r.LeftOut)
	}
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 8 {
			t.Errorf("%d ways, want 8", len(bl.Succ))
		}
	}
}

// A table of which it is not known how long it is does not end at an entry that leads nowhere,
// where others behind it lead into the routine: who knows which are its own.
func TestTableWithHoles(t *testing.T) {
	for holes, entries := range map[string]string{"few": "1b-9b, 2b-9b, 0, 0,",
		"many to the end": "1b-9b, 2b-9b," + strings.Repeat("10b-9b,", 40)} {
		path := compileFile(t, "masked/holes.c", "-O1", `-DHOLES="`+entries+`"`)
		r := routine(t, recoverFile(t, path), "holes")
		if !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("%s: left out: %q", holes, r.LeftOut)
		}
	}
}

// A comparison of a byte bounds no more than that byte.
func TestByteCompared(t *testing.T) {
	builds := [][]string{{"-O1"}, {"-O2"}, {"-O3"}}
	for _, flags := range builds {
		r := routine(t, recoverFile(t, compileFile(t, "masked/byte.c", flags...)), "changed")
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{6}) {
			t.Errorf("%q: changed: switches of %d ways, want 6; left out: %q", flags, ways,
				r.LeftOut)
		}
	}
	coverage{
		"shifted": checkExact(t, "masked/byte.c", "shifted", 6, builds),
	}.check(t, "byte.golden")
}

// A table does not end where another jump of the routine has it begin.
func TestTableNamedInItsMiddle(t *testing.T) {
	covered := coverage{"middle": 0}
	path := compileFile(t, "masked/middle.c", "-O2", "-no-pie", "-fno-pie")
	r := routine(t, recoverFile(t, path), "middle")
	if ways := switchWays(r); r.LeftOut == "" && !slices.Equal(ways, []int{2, 4}) {
		t.Errorf("switches of %d ways, want 2 and 4", ways)
	} else if r.LeftOut == "" {
		covered["middle"]++
	}
	covered.check(t, "middle.golden")
}

// A label that a table has where no index leads is no way into a routine from elsewhere.
func TestLabelsInHoles(t *testing.T) {
	covered := coverage{"holes": 0}
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-no-pie", "-fno-pie"}} {
		r := routine(t, recoverFile(t, compileFile(t, "masked/unused.c", flags...)), "holes")
		if r.LeftOut == "" {
			covered["holes"]++
		} else {
			t.Logf("%v: left out: %s", flags, r.LeftOut)
		}
	}
	covered.check(t, "unused.golden")
}

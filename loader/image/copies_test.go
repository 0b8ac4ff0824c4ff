package image

import (
	"slices"
	"testing"
)

// Copies finds where code of a routine begins that is inlined, and code that is inlined into that.
func TestCopies(t *testing.T) {
	lines := smallLines(t, lineELF(inlinedDWARF())) // g from byte 1 on; h in it, from byte 2 to 4
	for name, want := range map[string][]uint64{
		"g": {smallCode + 1, smallCode + 2, smallCode + 5},
		"h": {smallCode + 2},
		"f": nil, // it has code of its own
	} {
		got := lines.Copies(func(routine string) bool { return routine == name })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
	if err := lines.Trouble(); err != nil {
		t.Error(err)
	}
}

// Every place of an inlined routine in a real program is found.
func TestCopiesOfCompiledCode(t *testing.T) {
	im := mustOpen(t, compile(t, "chains.cc", chains, "-g", "-O2"))
	lines, err := im.Lines()
	if err != nil {
		t.Fatal(err)
	}
	isThird := func(c Call) bool { return c.Routine == "chain::third" }
	var want, got []uint64 // all places, each where what is before is none
	before := false
	for _, addr := range code(im) {
		is := slices.ContainsFunc(lines.Inlined(addr), isThird)
		if is && !before {
			want = append(want, addr)
		}
		before = is
	}
	for _, addr := range lines.Copies(func(name string) bool { return name == "chain::third" }) {
		if !slices.ContainsFunc(lines.Inlined(addr), isThird) {
			t.Errorf("%#x is not inlined from it", addr)
		}
		got = append(got, addr)
	}
	for _, addr := range want {
		if !slices.Contains(got, addr) {
			t.Errorf("%#x is missing in %x", addr, got)
		}
	}
	if len(want) == 0 {
		t.Error("third is nowhere inlined")
	}
	if n := im.DebugBytes(); n < 1<<10 || n > 1<<20 {
		t.Errorf("%d bytes of debug information", n)
	}
}

package recordreport

import (
	"slices"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
)

// TestOverlaps: the greatest useful degree is that of what ran within the loop, not behind it.
func TestOverlaps(t *testing.T) {
	s := &wpp.Snapshot{Routines: []wpp.Routine{{Name: "f", Blocks: make([]wpp.Block, 5)}},
		Symbols: []wpp.Symbol{
			{Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0, 1, 2}},
			{Start: ops.StartLoop, End: ops.EndReturn, Blocks: []int{1, 2, 3, 4}},
		}}
	if lines, err := Overlaps(s); lines != nil || err != nil {
		t.Errorf("of a profile without: %q, %v", lines, err)
	}
	p := &overlapped.Profile{Degree: 0, Shapes: []overlapped.Shape{{Predicates: []int{1, 2, 3},
		Loops: []overlapped.Loop{{Head: 1, Blocks: []int{1, 2}}}}},
		Extensions: []overlapped.Extension{{Routine: 0, Loop: 0, Blocks: []int{1}}},
		Counts:     []overlapped.Count{{Path: 0, Extension: 0, N: 5}}, Uncounted: []uint32{0}}
	s.Sections = []*wpp.Section{p.Section()}
	want := []string{"overlapping paths of degree 0: 1 different ones ran 5 times; the greatest " +
		"useful degree, of what ran, is 1, in f",
		"of 1 path not all overlapping paths are counted, for there are too many"}
	if lines, err := Overlaps(s); err != nil || !slices.Equal(lines, want) {
		t.Errorf("%q, %v; want %q", lines, err, want)
	}
}

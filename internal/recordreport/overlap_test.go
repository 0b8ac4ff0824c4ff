package recordreport

import (
	"slices"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
)

// TestOverlaps: the greatest useful degree tells apart what ran within the loop, not behind it.
func TestOverlaps(t *testing.T) {
	s := &wpp.Snapshot{Routines: []wpp.Routine{{Name: "f", Blocks: make([]wpp.Block, 5)}},
		Symbols: []wpp.Symbol{
			{Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0, 1, 2}},
			{Start: ops.StartLoop, End: ops.EndReturn, Blocks: []int{1, 2, 3, 4}},
			{Start: ops.StartLoop, End: ops.EndReturn, Blocks: []int{1, 3, 4}},
		}}
	if lines, err := Overlaps(s); lines != nil || err != nil {
		t.Errorf("of a profile without: %q, %v", lines, err)
	}
	ran := &pathprofile.Counts{Of: []uint64{5, 3, 2}, Threads: 1, Runs: 1}
	for _, test := range []struct {
		uncounted []uint32
		want      []string
	}{
		{nil, []string{"overlapping paths of degree 0: 1 different ones ran 5 times; the " +
			"greatest useful degree, of what ran, is 1"}},
		{[]uint32{0}, []string{"overlapping paths of degree 0: 1 different ones ran 5 times; the " +
			"greatest useful degree, of what ran, is 0",
			"of 1 path not all overlapping paths are counted, for there are too many"}},
	} {
		p := &overlapped.Profile{Shapes: []overlapped.Shape{{Predicates: []int{1, 2, 3},
			Loops: []overlapped.Loop{{Head: 1, Blocks: []int{1, 2}}}}},
			Extensions: []overlapped.Extension{{Routine: 0, Loop: 0, Blocks: []int{1}}},
			Counts:     []overlapped.Count{{Path: 0, Extension: 0, N: 5}},
			Uncounted:  test.uncounted}
		s.Sections = []*wpp.Section{ran.Section(), p.Section()}
		if lines, err := Overlaps(s); err != nil || !slices.Equal(lines, test.want) {
			t.Errorf("%q, %v; want %q", lines, err, test.want)
		}
	}
}

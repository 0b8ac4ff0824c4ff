package overlapped

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

// snapshot has a routine of a loop: block 1 is its head, and 2 calls the routine itself.
func snapshot() *wpp.Snapshot {
	path := func(start ops.Start, end ops.End, blocks ...int) wpp.Symbol {
		return wpp.Symbol{Start: start, End: end, Blocks: blocks}
	}
	return &wpp.Snapshot{
		Routines: []wpp.Routine{{Name: "unmet"}, {Name: "f", Blocks: make([]wpp.Block, 4)}},
		Symbols: []wpp.Symbol{path(ops.StartEntry, ops.EndLoop, 0, 1),
			path(ops.StartLoop, ops.EndLoop, 1, 2), {IsMark: true},
			path(ops.StartEntry, ops.EndTail, 0), path(ops.StartResume, ops.EndLoop, 1)},
	}
}

func profile() *Profile {
	return &Profile{Degree: 1, Shapes: []Shape{{Routine: 1, Predicates: []int{1, 2},
		Loops: []Loop{{Head: 1, Blocks: []int{1, 2}}, {Head: 3, LeftOut: "no reason"}},
		Calls: []Call{{2, 1}}}},
		Extensions: []Extension{{1, -1, []int{0}}, {1, 0, []int{1, 2}}},
		Counts:     []Count{{0, 0, 7}, {0, 1, math.MaxUint64}, {1, 1, 3}},
		Broken:     [Reasons]uint64{1, 2, 3, 4}, Uncounted: []uint32{1}}
}

// TestSection: what a section says is read again, and what refers to nothing is refused.
func TestSection(t *testing.T) {
	s, want := snapshot(), profile()
	if got, err := Of(s); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
	s.Sections = []*wpp.Section{want.Section()}
	got, err := Of(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for name, change := range map[string]func(p *Profile){
		"a degree of whole paths":     func(p *Profile) { p.Degree = math.MaxInt32 },
		"a shape of no routine":       func(p *Profile) { p.Shapes[0].Routine = 2 },
		"a shape twice":               func(p *Profile) { p.Shapes = slices.Repeat(p.Shapes, 2) },
		"a predicate of no block":     func(p *Profile) { p.Shapes[0].Predicates[1] = 4 },
		"predicates out of order":     func(p *Profile) { p.Shapes[0].Predicates[0] = 3 },
		"a loop of no block":          func(p *Profile) { p.Shapes[0].Loops[1].Head = 4 },
		"a loop without its head":     func(p *Profile) { p.Shapes[0].Loops[0].Blocks[0] = 0 },
		"loops out of order":          func(p *Profile) { p.Shapes[0].Loops[1].Head = 1 },
		"a call of no routine":        func(p *Profile) { p.Shapes[0].Calls[0].Routine = 2 },
		"an extension of no shape":    func(p *Profile) { p.Extensions[0].Routine = 0 },
		"an extension of no loop":     func(p *Profile) { p.Extensions[0].Loop = 2 },
		"an extension of no block":    func(p *Profile) { p.Extensions[0].Blocks[0] = 4 },
		"an empty extension":          func(p *Profile) { p.Extensions[0].Blocks = nil },
		"a count of no extension":     func(p *Profile) { p.Counts[0].Extension = 2 },
		"a count of no symbol":        func(p *Profile) { p.Counts[0].Path = 5 },
		"a count of a mark":           func(p *Profile) { p.Counts[2].Path = 2 },
		"a count of a tail jump":      func(p *Profile) { p.Counts[2].Path = 3 },
		"a count of a part of a path": func(p *Profile) { p.Counts[2].Path = 4 },
		"a mark not counted":          func(p *Profile) { p.Uncounted[0] = 2 },
	} {
		p := profile()
		change(p)
		s.Sections = []*wpp.Section{p.Section()}
		if _, err := Of(s); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// FuzzOf: whatever a section says, it refers to nothing that the snapshot does not have.
func FuzzOf(f *testing.F) {
	data, err := profile().Section().Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, m := range []*OverlappedSection{{Path: []uint32{1}}, {Degree: math.MaxUint32},
		{Shape: []*OverlappedSection_Shape{{Routine: 1, Call: []uint32{1}}}}} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := snapshot()
		s.Sections = []*wpp.Section{wpp.NewSection(SectionKind, data)}
		p, err := Of(s)
		if err != nil {
			return
		}
		for _, c := range p.Counts {
			x := p.Extensions[c.Extension]
			shape := p.ShapeOf(x.Routine)
			if x.Loop >= 0 {
				shape.Loops[x.Loop].After(x.Blocks)
			}
			for _, b := range shape.Extend(x.Blocks, p.Degree) {
				_ = s.Routines[x.Routine].Blocks[b]
			}
			if _, ok := KindOf(s.Symbols[c.Path].End); !ok {
				t.Fatalf("%+v", c)
			}
		}
	})
}

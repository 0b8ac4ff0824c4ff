package decoder

import (
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/decoder/route"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// decoderOfOne decodes a program of one routine of one block, which returns: its activations can
// come to their ends.
func decoderOfOne(t *testing.T) *Decoder {
	t.Helper()
	r := &cfg.Routine{Symbol: "main", Blocks: []cfg.Block{{End: cfg.Ret}}}
	program := &cfg.Program{Routines: []*cfg.Routine{r}}
	found := []plan.Findings{{Blocks: make([]plan.Block, 1)}}
	p, err := plan.New(program, plan.Imports{}, found, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// returning is that routine.
func returning(t *testing.T) *route.Routine { return decoderOfOne(t).program.Routines[0] }

// stackOf has activations of a routine at these CFAs, outermost first.
func stackOf(r *route.Routine, cfas ...uint64) *stack {
	s := &stack{}
	for i, cfa := range cfas {
		s.push(&frame{
			activation: activation{r, cfa}, pos: r.At(0, 0),
			caller: wire.MakeCaller(wire.Inside, uint64(0x1000+i)), fromExternal: i == 0,
		})
	}
	return s
}

func TestFindGoesByTheChainOfCallers(t *testing.T) {
	r := returning(t)
	s := stackOf(r, 0x7f30, 0x7f20, 0x7f10)
	a := activation{r, 0x7f10}
	for _, c := range []struct {
		name  string
		chain []wire.Event
		want  int
	}{
		{"no chain", nil, 2},
		{"its caller", []wire.Event{wire.MakeCaller(wire.Inside, 0x1002)}, 2},
		{"its callers", []wire.Event{wire.MakeCaller(wire.Inside, 0x1002),
			wire.MakeCaller(wire.Inside, 0x1001)}, 2},
		{"another caller", []wire.Event{wire.MakeCaller(wire.Inside, 0x1999)}, -1},
	} {
		if got := s.find(a, c.chain); got != c.want {
			t.Errorf("%s: frame %d, want %d", c.name, got, c.want)
		}
	}
	if got := s.find(activation{r, 0x7f18}, nil); got != -1 {
		t.Errorf("no activation there: frame %d", got)
	}
}

// TestActivationInAnothersPlace: what was in its place before, and what that has called, cannot be
// on the stack any more.
func TestActivationInAnothersPlace(t *testing.T) {
	r := returning(t)
	s := stackOf(r, 0x7f30, 0x7f20, 0x7f10)
	s.push(&frame{activation: activation{r, 0x7f20}, pos: r.At(0, 0)})
	want := []bool{false, true, true, false}
	for i, f := range s.frames {
		if f.overwritten != want[i] {
			t.Errorf("frame %d is overwritten: %v", i, f.overwritten)
		}
	}
	if got := s.find(activation{r, 0x7f20}, nil); got != 3 {
		t.Errorf("frame %d is at that place, want the new one", got)
	}
}

func TestLowestIsThatOfAllFurtherOut(t *testing.T) {
	s := stackOf(returning(t), 0x7f30, 0x7f10, 0x8f20)
	for i, want := range []uint64{0x7f30, 0x7f10, 0x7f10} {
		if got := s.frames[i].lowest; got != want {
			t.Errorf("frame %d: the lowest CFA is %x, want %x", i, got, want)
		}
	}
}

// TestPiecesThatAreAway: a piece comes back for an activation of it, once, and not where a new
// activation has overwritten it.
func TestPiecesThatAreAway(t *testing.T) {
	r := returning(t)
	piece := func() []frame { return stackOf(r, 0x6f30, 0x6f20).frames }
	a := activation{r, 0x6f20}
	s := &stack{}
	s.keepAway(piece())
	if s.takeAway(activation{r, 0x5000}, 0, false, nil) != nil {
		t.Error("a piece came back for an activation that it has not")
	}
	if got := s.takeAway(a, 0, false, nil); len(got) != 2 {
		t.Errorf("a piece of %d frames came back, want 2", len(got))
	}
	if s.takeAway(a, 0, false, nil) != nil {
		t.Error("a piece came back twice")
	}
	s.keepAway(piece())
	s.push(&frame{activation: activation{r, 0x6f20}, pos: r.At(0, 0)})
	if s.takeAway(a, 0, false, nil) != nil {
		t.Error("a piece came back whose place another activation has taken")
	}
}

func TestPiecesAreBounded(t *testing.T) {
	r := returning(t)
	s := &stack{}
	for i := range 2 * mostAway {
		s.keepAway(stackOf(r, uint64(0x1000*(i+1))).frames)
	}
	if len(s.away) != mostAway {
		t.Errorf("%d pieces are kept, want %d", len(s.away), mostAway)
	}
	if got := s.away[0][0].cfa; got != 0x1000*(mostAway+1) {
		t.Errorf("the oldest that is kept is at %x: the oldest go first", got)
	}
}

func TestFirstOverwritten(t *testing.T) {
	s := stackOf(returning(t), 0x7f30, 0x7f20, 0x7f10)
	for cfa, want := range map[uint64]int{
		0x7f20: 1, // that one's place
		0x7f18: 3, // a place between
		0x9000: 3, // above all
	} {
		if got := s.firstOverwritten(cfa); got != want {
			t.Errorf("external code calls back at %x: %d frames stay, want %d", cfa, got, want)
		}
	}
}

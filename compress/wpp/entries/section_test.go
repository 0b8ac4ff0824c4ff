package entries

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

func snapshot(sections ...*wpp.Section) *wpp.Snapshot {
	return &wpp.Snapshot{Routines: []wpp.Routine{{Blocks: make([]wpp.Block, 3)}, {}},
		Sections: sections}
}

func TestSection(t *testing.T) {
	for _, want := range []Counts{
		{},
		{{Routine: 0, Block: 2, Callee: 1}: {Traced: 5, External: math.MaxUint64},
			{Routine: 0, Block: 2, Callee: 0}: {Traced: 1}},
	} {
		got, err := Of(snapshot(want.Section()))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	if got, err := Of(snapshot()); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// TestDamagedSection has what no snapshot can say.
func TestDamagedSection(t *testing.T) {
	one := []uint64{1}
	for name, m := range map[string]*EntriesSection{
		"lists of different lengths": {Routine: []uint32{0}},
		"no such routine": {Routine: []uint32{2}, Block: []uint32{0}, Callee: []uint32{0},
			Traced: one, External: one},
		"no such callee": {Routine: []uint32{0}, Block: []uint32{0}, Callee: []uint32{9},
			Traced: one, External: one},
		"no such block": {Routine: []uint32{1}, Block: []uint32{0}, Callee: []uint32{0},
			Traced: one, External: one},
		"the same twice": {Routine: []uint32{0, 0}, Block: []uint32{1, 1},
			Callee: []uint32{1, 1}, Traced: []uint64{1, 2}, External: []uint64{0, 0}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Of(snapshot(wpp.NewSection(Kind, data))); err == nil {
			t.Errorf("%s: %v", name, c)
		}
	}
}

// FuzzOf: whatever a section says, what is returned refers to what the snapshot has.
func FuzzOf(f *testing.F) {
	add := func(c Counts) {
		data, err := c.Section().Data()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	add(Counts{})
	add(Counts{{0, 2, 1}: {3, 4}, {0, 0, 1}: {1, 0}})
	add(Counts{{5, 2, 1}: {3, 4}})
	f.Fuzz(func(t *testing.T, data []byte) {
		counts, err := Of(snapshot(wpp.NewSection(Kind, data)))
		if err != nil {
			return
		}
		for call := range counts {
			if call.Routine != 0 || call.Block < 0 || call.Block > 2 || call.Callee < 0 ||
				call.Callee > 1 {
				t.Fatalf("%+v", call)
			}
		}
	})
}

// TestCounter: an activation counts at the call that its thread has made directly before, if the
// code does not name the callee.
func TestCounter(t *testing.T) {
	var alphabet ops.Symbols
	const named = 9 // a path that ends with a call whose callee is known
	c := NewCounter(&alphabet, func(sym uint32) (routine, block int, ok bool) {
		m := alphabet.Meaning(sym)
		return m.Routine, int(m.Path) % 10, !m.IsMark && m.Path != named
	})
	var emitted []uint32
	emit := func(sym uint32, _ uint64) { emitted = append(emitted, sym) }
	one, other := c.Recorder(emit), c.Recorder(emit)
	one.EnterRoutine(3, ops.External) // before all that is known
	one.NewPath(3, 1, 1)
	other.EnterRoutine(3, ops.External)
	other.NewPath(3, 2, 1)
	one.EnterRoutine(4, ops.Traced)
	one.NewPath(4, named, 1)
	one.EnterRoutine(5, ops.Traced)
	other.EnterRoutine(4, ops.External)
	other.NewPath(3, 11, 1) // another path to the same block
	other.EnterRoutine(4, ops.Unknown)
	other.NewPath(3, 1, 1)
	other.Mark(ops.Handler, 0)
	other.EnterRoutine(4, ops.External)
	want := Counts{{3, 1, 4}: {Traced: 1, External: 1}, {3, 2, 4}: {External: 1}}
	if diff := cmp.Diff(want, c.Counts()); diff != "" || len(emitted) != 6 {
		t.Errorf("%s, %d symbols", diff, len(emitted))
	}
	c.counts[Call{3, 1, 4}] = Count{Traced: math.MaxUint64}
	one.NewPath(3, 1, 1)
	one.EnterRoutine(4, ops.Traced)
	if n := c.Counts()[Call{3, 1, 4}]; n.Traced != math.MaxUint64 {
		t.Errorf("a count that is at its end: %d", n.Traced)
	}
}

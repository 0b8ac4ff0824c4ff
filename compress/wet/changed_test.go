package wet

import (
	"slices"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// A doubtful counts what is confirmed, and keeps the values.
type doubtful struct {
	confirmed int
	values    []uint64
}

func (d *doubtful) note(k machine.Knowledge) {
	if k == machine.Confirmed {
		d.confirmed++
	}
}

func (d *doubtful) Before(b *Before) error {
	_, k := b.General(machine.RBX)
	d.note(k)
	_, _, flags := b.Flags()
	_, vector := b.Vector(0)
	d.note(vector[0])
	d.note(b.Read(0x1000, make([]byte, 1)))
	d.confirmed += int(flags)
	return nil
}

func (d *doubtful) Executed(e *Executed) error {
	for _, r := range e.Written {
		d.note(r.Known)
		d.values = append(d.values, r.Value)
	}
	for i := range e.Accesses {
		d.note(e.Accesses[i].At)
		d.note(e.Accesses[i].Known)
		d.values = append(d.values, e.Accesses[i].Addr)
	}
	_, vector := e.Vector(0)
	d.note(vector[0])
	d.confirmed += int(e.FlagsBefore.Confirmed)
	return nil
}

// TestChangedCode: where the code of a routine has changed, the values are the same, and none is
// confirmed; which routine it is, the file says.
func TestChangedCode(t *testing.T) {
	s := recorded(t, []int{0, 1, 2, 4, 0})
	replay := func(s *wpp.Snapshot) (d doubtful) {
		segments, err := Segments(s, 0)
		for i := range segments {
			if err == nil {
				err = segments[i].Replay(0, ^uint64(0), &d)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := replay(s)
	code := NewCode(func(int) *Routine { return &Routine{Blocks: blocks()} })
	code.Routine(0)
	code.SetChanged([]int{0})
	s.Sections[0] = code.Copy().Section()
	after := replay(s)
	if before.confirmed < 10 || after.confirmed > 0 || !slices.Equal(before.values, after.values) {
		t.Errorf("%d are confirmed, and %d of changed code; values %x and %x", before.confirmed,
			after.confirmed, before.values, after.values)
	}
	c, err := CodeOf(s)
	if err != nil || !slices.Equal(c.Changed(), []int{0}) {
		t.Errorf("changed: %v, %v", c.Changed(), err)
	}
}

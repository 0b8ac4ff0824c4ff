package absint

import "slices"

// A Cell is a known place in memory.
type Cell struct {
	At    Slot
	Value Value
}

// A Slot is a place in memory: an absolute address, or a displacement from a symbol.
type Slot struct {
	Base int32 // symbol; 0 for an absolute address
	Disp int64
	Size uint8
}

// A Memory is what is known of places in memory since a run began.
type Memory struct {
	Cells        []Cell
	FrameAliased bool // pointers may lead into the frame

	stored         []Slot // in the frame
	storedAnywhere bool   // in the frame, at a place that is not known
}

func (m *Memory) reset() {
	m.Cells, m.stored, m.storedAnywhere = m.Cells[:0], m.stored[:0], false
}

// find returns what is known of a place.
func (m *Memory) find(at Slot) (v Value, ok bool) {
	i := slices.IndexFunc(m.Cells, func(c Cell) bool { return c.At == at })
	if i < 0 {
		return Value{}, false
	}
	return m.Cells[i].Value, true
}

// hold notes that a place holds a value.
func (m *Memory) hold(at Slot, v Value) { m.Cells = append(m.Cells, Cell{At: at, Value: v}) }

// forget forgets some cells.
func (m *Memory) forget(which func(c *Cell) bool) {
	m.Cells = slices.DeleteFunc(m.Cells, func(c Cell) bool { return which(&c) })
}

// forgetAll forgets all, the frame too, of which it is not known where in it something is stored.
func (m *Memory) forgetAll() {
	m.storedAnywhere = true
	m.Cells = m.Cells[:0]
}

// forgetPointed forgets what a call may change, or a store through a pointer.
func (m *Memory) forgetPointed() {
	m.forget(func(c *Cell) bool { return c.At.Base != FrameSymbol || m.FrameAliased })
}

// overwrite forgets what a store to a place that is known may change: a place in the frame is
// another than what a pointer leads to, unless that may lead into the frame.
func (m *Memory) overwrite(at Slot) {
	switch at.Base {
	case 0: // an absolute address is none of the frame's
		m.forget(func(c *Cell) bool { return c.At.Base != FrameSymbol })
	case FrameSymbol:
		m.stored = append(m.stored, at)
		m.forget(func(c *Cell) bool {
			if c.At.Base == FrameSymbol {
				return c.At.overlaps(at)
			}
			return m.FrameAliased && c.At.Base != 0
		})
	default:
		m.forgetPointed()
	}
}

// overwriteElement forgets what a store to an element of an array in the frame may change.
func (m *Memory) overwriteElement() {
	m.storedAnywhere = true
	m.forget(func(c *Cell) bool { return c.At.Base != 0 })
}

// hasStored says whether a place in the frame may have been written since the run began.
func (m *Memory) hasStored(at Slot) bool {
	return m.storedAnywhere || slices.ContainsFunc(m.stored, at.overlaps)
}

// overlaps says whether two places of the same base have a byte in common.
func (at Slot) overlaps(other Slot) bool {
	return other.Disp < at.Disp+int64(at.Size) && at.Disp < other.Disp+int64(other.Size)
}

package paths

import "fmt"

// An Outcome is what a path turns out to be at its end, by its two numbers.
type Outcome uint8

// The outcomes. All but Interesting are of paths that are not interesting.
const (
	Interesting Outcome = iota
	Alias               // it has the identifier of an interesting path
	Hole                // its identifier is in the range, and no interesting path's
	Underflow           // its identifier is below 0
	Overflow            // its identifier is beyond the range
	outcomes            // how many there are
)

func (o Outcome) String() string {
	names := [...]string{"interesting", "alias", "hole", "underflow", "overflow"}
	if int(o) >= len(names) {
		return fmt.Sprintf("outcome %d", o)
	}
	return names[o]
}

// maxCounters is how many counters an array may have: 16 MB with the numbers beside them.
const maxCounters = 1 << 20

// A Counter counts the paths of a routine that are interesting, in an array by identifier, and of
// all others how many there were. It does what a kernel is to do at the end of a path: one
// comparison says whether the identifier is in the range, negative ones being large without their
// sign; a second one, whether the path is the one that has it. It is for one goroutine at a time.
type Counter struct {
	cells  []cell // by identifier
	none   uint64 // a number that no path has, as that of a hole
	totals [outcomes]uint64
}

// A cell is the counter of an interesting path, and that path's number.
type cell struct{ number, count uint64 }

// NewCounter returns a Counter of the interesting paths that p numbers. It fails where the range is
// too large for an array.
func NewCounter(p *Preferential) (*Counter, error) {
	if p.Range() > maxCounters {
		return nil, fmt.Errorf("count %d interesting paths in an array: it would need %d "+
			"counters, and %d are the most", len(p.Paths()), p.Range(), maxCounters)
	}
	c := &Counter{cells: make([]cell, p.Range()), none: p.n.Total}
	for i := range c.cells {
		c.cells[i].number = c.none
	}
	for _, path := range p.Paths() {
		c.cells[path.ID].number = path.Number
	}
	return c, nil
}

// Count counts a path that has ended with these numbers, and returns what it turned out to be.
func (c *Counter) Count(w Weights) Outcome {
	o := c.outcome(w)
	if o == Interesting {
		c.cells[w.ID].count++
	}
	c.totals[o]++
	return o
}

func (c *Counter) outcome(w Weights) Outcome {
	if uint64(w.ID) >= uint64(len(c.cells)) {
		if w.ID < 0 {
			return Underflow
		}
		return Overflow
	}
	switch c.cells[w.ID].number {
	case w.Number:
		return Interesting
	case c.none:
		return Hole
	}
	return Alias
}

// Of returns how often the interesting path with an identifier in the range ran; 0 for a hole.
func (c *Counter) Of(id int64) uint64 { return c.cells[id].count }

// Total returns how many paths of an outcome were counted.
func (c *Counter) Total(o Outcome) uint64 { return c.totals[o] }

package pathprofile

import (
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/internal/saturating"
)

// A Counter is an ops.Sink that counts paths and marks, of any number of threads that take turns.
// It belongs to one goroutine. An operation costs one look-up in the alphabet; memory is 8 bytes a
// symbol. Marks are counted by their kind alone, whatever number they have: of those numbers there
// is no end.
type Counter struct {
	alphabet *ops.Symbols
	counts   []uint64 // by symbol; shorter: the rest are 0
	total    uint64   // of all counts
}

// NewCounter returns a counter of the symbols of an alphabet, which may be shared.
func NewCounter(alphabet *ops.Symbols) *Counter { return &Counter{alphabet: alphabet} }

// EnterRoutine counts nothing: the activation's first path says the same.
func (c *Counter) EnterRoutine(int) {}

// LeaveRoutine counts nothing.
func (c *Counter) LeaveRoutine() {}

// NewPath counts executions of a path.
func (c *Counter) NewPath(routine int, path, times uint64) {
	c.add(c.alphabet.Symbol(routine, path), times)
}

// Mark counts a mark.
func (c *Counter) Mark(m ops.Mark, _ uint64) { c.add(c.alphabet.MarkSymbol(m, 0), 1) }

// Total is how many paths and marks have come so far.
func (c *Counter) Total() uint64 { return c.total }

func (c *Counter) add(sym uint32, times uint64) {
	if int(sym) >= len(c.counts) {
		c.counts = append(c.counts, make([]uint64, c.alphabet.Len()-len(c.counts))...)
	}
	c.counts[sym] = saturating.Add(c.counts[sym], times)
	c.total = saturating.Add(c.total, times)
}

// Counts copies what has been counted so far, of all symbols of the alphabet.
func (c *Counter) Counts() []uint64 {
	return append(slices.Clone(c.counts), make([]uint64, c.alphabet.Len()-len(c.counts))...)
}

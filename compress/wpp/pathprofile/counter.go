package pathprofile

import (
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/internal/saturating"
)

// A Counter is an ops.Sink that counts paths and marks, of any number of threads that take turns.
// It belongs to one goroutine. An operation costs one look-up in the alphabet; memory is 8 bytes a
// symbol, and of a process that is traced in windows up to mostClusters times that. Marks are
// counted by their kind alone, whatever number they have: of those numbers there
// is no end.
type Counter struct {
	alphabet *ops.Symbols
	counts   []uint64 // since the last cluster, by symbol; shorter: the rest are 0
	total    uint64   // of all counts

	clusters []Cluster // of windows that have ended
	each     uint64    // how many windows the next one gets
	windows  uint64    // that have ended since the last one
	before   uint64    // the total when the last window ended
}

// mostClusters is how many clusters there are at most, with that of the windows that go on.
const mostClusters = 64

// NewCounter returns a counter of the symbols of an alphabet, which may be shared.
func NewCounter(alphabet *ops.Symbols) *Counter {
	return &Counter{alphabet: alphabet, each: 1}
}

// EnterRoutine counts nothing: the activation's first path says the same.
func (c *Counter) EnterRoutine(int, ops.Caller) {}

// LeaveRoutine counts nothing.
func (c *Counter) LeaveRoutine() {}

// NewPath counts executions of a path.
func (c *Counter) NewPath(routine int, path, times uint64) {
	c.Count(c.alphabet.Symbol(routine, path), times)
}

// Mark counts a mark.
func (c *Counter) Mark(m ops.Mark, _ uint64) { c.Count(c.alphabet.MarkSymbol(m, 0), 1) }

// Total is how many paths and marks have come so far.
func (c *Counter) Total() uint64 { return c.total }

// Count counts executions of a symbol of the alphabet.
func (c *Counter) Count(sym uint32, times uint64) {
	if int(sym) >= len(c.counts) {
		c.counts = append(c.counts, make([]uint64, c.alphabet.Len()-len(c.counts))...)
	}
	c.counts[sym] = saturating.Add(c.counts[sym], times)
	c.total = saturating.Add(c.total, times)
}

// EndWindow says that a window has ended, so that it is known in which of them what ran. Where
// there are many, some in a row are one cluster: memory does not grow with their number.
func (c *Counter) EndWindow() {
	if c.total == c.before {
		return // nothing ran in it
	}
	c.before = c.total
	if c.windows++; c.windows < c.each {
		return
	}
	c.clusters = append(c.clusters, Cluster{c.windows, c.counts})
	c.counts, c.windows = nil, 0
	if len(c.clusters) < mostClusters-1 {
		return
	}
	half := c.clusters[:0]
	for pair := range slices.Chunk(c.clusters, 2) {
		joined := pair[0]
		for _, x := range pair[1:] {
			joined = Cluster{joined.Windows + x.Windows, sum(joined.Of, x.Of)}
		}
		half = append(half, joined)
	}
	clear(c.clusters[len(half):])
	c.clusters, c.each = half, 2*c.each
}

// sum adds up counts, of which it keeps those that are of more symbols.
func sum(a, b []uint64) []uint64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	for sym, n := range b {
		a[sym] = saturating.Add(a[sym], n)
	}
	return a
}

// Counts copies what has been counted so far, of all symbols of the alphabet, but for what is known
// of threads and processes.
func (c *Counter) Counts() *Counts {
	all := &Counts{Of: sum(make([]uint64, c.alphabet.Len()), c.counts)}
	for _, x := range c.clusters {
		all.Clusters = append(all.Clusters, Cluster{x.Windows, slices.Clone(x.Of)})
		sum(all.Of, x.Of)
	}
	last := c.windows
	if c.total > c.before { // one goes on
		last++
	}
	if last > 0 && len(c.clusters)+int(c.windows) > 0 { // else there are no windows
		all.Clusters = append(all.Clusters, Cluster{last, slices.Clone(c.counts)})
	}
	return all
}

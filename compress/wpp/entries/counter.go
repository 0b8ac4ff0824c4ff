package entries

import (
	"maps"

	"wpptrace/compress/ops"
	"wpptrace/internal/saturating"
)

// A Counter counts how activations began, of any number of threads that take turns. It belongs to
// one goroutine. A path costs a store, and the beginning of an activation behind a call that is
// counted a look-up.
type Counter struct {
	alphabet *ops.Symbols
	callOf   func(sym uint32) (routine, block int, ok bool)
	calls    []call // by symbol
	counts   Counts
}

// A call is that at the end of a path.
type call struct {
	known, counted bool
	routine, block int32
}

// NewCounter returns a counter of what the symbols of an alphabet, which may be shared, stand for.
// callOf says by which call or tail jump a path ends; false: by none, or the code names its callee.
// It is asked once for each symbol.
func NewCounter(alphabet *ops.Symbols,
	callOf func(sym uint32) (routine, block int, ok bool)) *Counter {
	return &Counter{alphabet: alphabet, callOf: callOf, counts: Counts{}}
}

// Recorder returns the sink of a thread, which hands its symbols to emit, as an ops.Recorder does.
func (c *Counter) Recorder(emit func(sym uint32, times uint64)) ops.Sink {
	return &recorder{counter: c, emit: emit, last: none}
}

// none is no symbol.
const none = ^uint32(0)

type recorder struct {
	counter *Counter
	emit    func(sym uint32, times uint64)
	last    uint32 // symbol
}

// EnterRoutine counts an activation that begins directly behind a path.
func (s *recorder) EnterRoutine(routine int, by ops.Caller) {
	if s.last != none {
		s.counter.enter(s.last, routine, by)
	}
}

// LeaveRoutine records nothing.
func (s *recorder) LeaveRoutine() {}

// NewPath hands on the path's symbol.
func (s *recorder) NewPath(routine int, path, times uint64) {
	s.last = s.counter.alphabet.Symbol(routine, path)
	s.emit(s.last, times)
}

// Mark hands on the mark's symbol.
func (s *recorder) Mark(m ops.Mark, n uint64) {
	s.last = s.counter.alphabet.MarkSymbol(m, n)
	s.emit(s.last, 1)
}

func (c *Counter) enter(last uint32, routine int, by ops.Caller) {
	if n := int(last) + 1 - len(c.calls); n > 0 {
		c.calls = append(c.calls, make([]call, n)...)
	}
	at := &c.calls[last]
	if !at.known {
		r, b, ok := c.callOf(last)
		*at = call{true, ok, int32(r), int32(b)}
	}
	if !at.counted {
		return
	}
	key := Call{int(at.routine), int(at.block), routine}
	n := c.counts[key]
	if by == ops.Traced {
		n.Traced = saturating.Add(n.Traced, 1)
	} else {
		n.External = saturating.Add(n.External, 1)
	}
	c.counts[key] = n
}

// Counts copies what has been counted so far.
func (c *Counter) Counts() Counts { return maps.Clone(c.counts) }

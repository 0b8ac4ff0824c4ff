package tiers

import (
	"iter"

	"wpptrace/compress/wpp"
)

// symbols is a thread's stream, which is gone through as it is asked for.
type symbols struct {
	next     func() (uint32, bool)
	position uint64 // behind current
	current  uint32
}

// stream has it be that of a thread, until stop is called.
func stream(s *wpp.Snapshot, thread int, x *symbols) (stop func()) {
	x.next, stop = iter.Pull(s.Threads[thread].Grammar.Expand(0))
	return stop
}

// at is the symbol at a position, none before that of the last call.
func (x *symbols) at(position uint64) uint32 {
	for x.position <= position {
		x.current, _ = x.next()
		x.position++
	}
	return x.current
}

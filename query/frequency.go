package query

import (
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// Frequencies are how often symbols occur in the streams of one or more threads (Larus 1999,
// section 3.3). (How often a rule does is wpp.Grammar.Uses.) They are read-only.
type Frequencies struct {
	Threads int      // that were counted
	count   []uint64 // by symbol
}

// NewFrequencies counts the symbols in the threads with these ids, or in all threads when none is
// given. It takes time and memory linear in the grammars, some 16 bytes a right-hand-side symbol
// while it counts. It fails where the snapshot has no such thread.
func NewFrequencies(s *wpp.Snapshot, tids ...int) (f *Frequencies, err error) {
	defer wpp.Recover(&err)
	all, threads, err := forestOf(s, tids, len(s.Symbols), nil)
	if err != nil {
		return nil, err
	}
	return &Frequencies{threads, all.Counts()}, nil
}

// Symbol returns how often a symbol, a path or a mark, occurs.
func (f *Frequencies) Symbol(sym uint32) uint64 {
	if int(sym) < len(f.count) {
		return f.count[sym]
	}
	return 0
}

func costOf(sequence []uint32, cost []uint64) uint64 {
	var sum uint64
	for _, sym := range sequence {
		sum = saturating.Add(sum, cost[sym])
	}
	return sum
}

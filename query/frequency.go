package query

import (
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// Frequencies are how often symbols and sequences of symbols occur in the streams of one or more
// threads (Larus 1999, section 3.3). (How often a rule does is wpp.Grammar.Uses.) It belongs to one
// goroutine.
type Frequencies struct {
	walker    *walker // nil: there are several forests
	forests   *forests
	count     []uint64 // by symbol
	terminals postings
}

// NewFrequencies prepares the frequencies in the threads with these ids, or in all threads when
// none is given. It takes time and memory linear in the grammars, some 16 bytes a right-hand-side
// symbol. It fails where the snapshot has no such thread.
func NewFrequencies(s *wpp.Snapshot, tids ...int) (f *Frequencies, err error) {
	defer wpp.Recover(&err)
	threads, err := Threads(s, tids)
	if err != nil {
		return nil, err
	}
	all := newForests(s, threads)
	f = &Frequencies{forests: all, count: all.count()}
	if w := all.whole; w != nil {
		f.walker = newWalker(w)
		f.terminals = newPostings(w.body, w.symbols,
			func(v uint32) (uint32, bool) { return v, !wpp.IsRule(v) })
	}
	return f, nil
}

// Symbol returns how often a symbol, a path or a mark, occurs.
func (f *Frequencies) Symbol(sym uint32) uint64 {
	if int(sym) < len(f.count) {
		return f.count[sym]
	}
	return 0
}

// Sequence returns how often a sequence of symbols occurs within one thread, occurrences that
// overlap counted each. The empty sequence does not occur. It takes time linear in the places in
// the grammars of the sequence's beginnings.
func (f *Frequencies) Sequence(sequence []uint32) (n uint64, err error) {
	defer wpp.Recover(&err)
	if len(sequence) == 0 || int(sequence[0]) >= len(f.count) {
		return 0, nil
	}
	if f.walker == nil {
		return countAll(f.forests, [][]uint32{sequence})[0], nil
	}
	bundles := f.places(sequence[:1])
	for _, sym := range sequence[1:] {
		next := bundles[:0]
		for _, st := range f.walker.follow(bundles) {
			if st.symbol == sym {
				next = append(next, st.to)
			}
		}
		bundles = next
	}
	return countOf(bundles), nil
}

// places are those of symbols.
func (f *Frequencies) places(symbols []uint32) []bundle {
	var at []uint32
	for _, sym := range symbols {
		at = append(at, f.terminals.of(sym)...)
	}
	return f.walker.beginning(at)
}

func costOf(sequence []uint32, cost []uint64) uint64 {
	var sum uint64
	for _, sym := range sequence {
		sum = saturating.Add(sum, cost[sym])
	}
	return sum
}

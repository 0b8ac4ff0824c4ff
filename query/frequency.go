package query

import "wpptrace/compress/wpp"

// A place is an occurrence of a sequence of symbols in the grammar, given by where it ends: its last symbols are the first offset
// terminals of the expansion of the symbol at body[pos].
//
// An occurrence belongs to the lowest rule whose expansion holds all of it. So a place stands for as many executions as that rule
// has derivations, and each execution has one place: the windows across the seams of a rule that Goto et al. (arXiv 1103.3114) count,
// but grown to the right from single symbols.
type place struct{ pos, offset uint32 }

// A step leads on from an occurrence: the next symbol, and the place of the sequence that is longer by it.
type step struct {
	symbol uint32
	to     place
}

// A walker follows occurrences to the right. It keeps its buffer from one to the next.
type walker struct {
	*forest
	ended []uint32
}

// follow appends the steps that lead on from an occurrence. There is one, unless the occurrence ends its rule: then there is one for
// each use of the rule, and none at the end of a thread. As a rule is the last symbol of another at most once, the way up meets
// no rule twice.
func (w *walker) follow(p place, steps []step) []step {
	if uint64(p.offset) < w.width(p.pos) {
		return append(steps, step{w.terminal(p.pos, p.offset), place{p.pos, p.offset + 1}})
	}
	w.ended = append(w.ended[:0], p.pos)
	for len(w.ended) > 0 {
		pos := w.ended[len(w.ended)-1] + 1
		w.ended = w.ended[:len(w.ended)-1]
		if w.body[pos] == endOfRule {
			w.ended = append(w.ended, w.uses.of(w.ruleOf[pos])...)
			continue
		}
		steps = append(steps, step{w.terminal(pos, 0), place{pos, 1}})
	}
	return steps
}

// Frequencies tells how often symbols and sequences of symbols occur in the streams of one or more threads (Larus 1999, section
// 3.3). (How often a rule does is wpp.Grammar.Uses.) It belongs to one goroutine.
type Frequencies struct {
	walker    // nil forest: there are several
	forests   *forests
	terminals postings
	steps     []step
}

// NewFrequencies prepares the frequencies in the threads with these ids, or in all threads when none is given. It takes time and
// memory linear in the grammars, some 16 bytes a right-hand-side symbol. It fails where the snapshot has no such thread.
func NewFrequencies(s *wpp.Snapshot, tids ...int) (*Frequencies, error) {
	threads, err := selectThreads(s, tids)
	if err != nil {
		return nil, err
	}
	return newFrequencies(newForests(s, threads)), nil
}

func newFrequencies(all *forests) *Frequencies {
	f := &Frequencies{walker: walker{forest: all.whole}, forests: all}
	if w := all.whole; w != nil {
		f.terminals = newPostings(w.body, w.symbols, func(v uint32) (uint32, bool) { return v, !wpp.IsRule(v) })
	}
	return f
}

// Symbol returns how often a symbol, a path or a mark, occurs. The first time it takes time linear in the grammars.
func (f *Frequencies) Symbol(sym uint32) uint64 {
	if int(sym) < f.forests.symbols {
		return f.forests.count()[sym]
	}
	return 0
}

// Sequence returns how often a sequence of symbols occurs within one thread, occurrences that overlap counted each. The empty
// sequence does not occur. It takes time linear in the places in the grammars of the sequence's beginnings.
func (f *Frequencies) Sequence(sequence []uint32) uint64 {
	if len(sequence) == 0 || int(sequence[0]) >= f.forests.symbols {
		return 0
	}
	if f.forest == nil {
		return countAll(f.forests, [][]uint32{sequence})[0]
	}
	var places []place
	for _, pos := range f.terminals.of(sequence[0]) {
		places = append(places, place{pos, 1})
	}
	for _, sym := range sequence[1:] {
		f.steps = f.steps[:0]
		for _, p := range places {
			f.steps = f.follow(p, f.steps)
		}
		places = places[:0]
		for _, st := range f.steps {
			if st.symbol == sym {
				places = append(places, st.to)
			}
		}
	}
	var n uint64
	for _, p := range places {
		n = addSaturating(n, f.weight(p.pos))
	}
	return n
}

func costOf(sequence []uint32, cost []uint64) uint64 {
	var sum uint64
	for _, sym := range sequence {
		sum = addSaturating(sum, cost[sym])
	}
	return sum
}

package forest

import (
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A Bundle is occurrences of a sequence of symbols that go on alike, as far as one symbol of the
// grammar reaches: their last symbols are the first offset terminals of what it expands to,
// wherever it stands.
//
// An occurrence belongs to the lowest rule whose expansion holds all of it. So a position where the
// symbol stands is for as many executions as its rule has derivations, and each execution has one
// position: the windows across the boundaries of a rule that Goto et al. (arXiv 1103.3114)
// count, but grown to the right from single symbols.
type Bundle struct {
	symbol uint32 // of the grammar: a terminal or a rule
	offset uint32
	Count  uint64   // executions
	at     []uint32 // positions
}

// A Step leads on from occurrences: the next symbol, a terminal, and those of the sequence that is
// longer by it.
type Step struct {
	Symbol uint32
	To     Bundle
}

// A Walker follows occurrences to the right. It keeps its buffers from one to the next, and belongs
// to the goroutine that its forest does.
type Walker struct {
	piece  *piece
	ended  []uint32
	behind []uint32
	steps  []Step
	// symbol of the grammar, rules behind terminals -> its index in steps plus 1; all 0 between
	// calls
	of    []uint32
	sizes []uint32 // of the bundles being made
}

// Walker makes a walker of a forest that is one piece (see AtOnce): of another, it panics. It takes
// memory in proportion to the symbols and the rules. It is good until the forest is renamed.
func (f *Forest) Walker() *Walker {
	return &Walker{piece: f.whole, of: make([]uint32, f.symbols+len(f.whole.begin))}
}

// Follow returns the steps that lead on from occurrences, until it is called again: one for those
// whose symbol goes on, and one for each symbol that comes behind. At the end of a thread none
// does. Where a symbol goes on, time is constant however many occurrences there are.
func (w *Walker) Follow(bundles []Bundle) []Step {
	w.steps, w.behind = w.steps[:0], w.behind[:0]
	for _, b := range bundles {
		if uint64(b.offset) < w.piece.width(b.symbol) {
			b.offset++
			w.steps = append(w.steps, Step{w.piece.terminal(b.symbol, b.offset-1), b})
			continue
		}
		for _, pos := range b.at {
			w.climb(pos)
		}
	}
	w.gather(w.behind)
	return w.steps
}

// climb lists the positions that come behind one: the next, unless its rule ends there; then those
// behind each use of the rule. As a rule is the last symbol of another at most once, the way up
// meets no rule twice.
func (w *Walker) climb(pos uint32) {
	w.ended = append(w.ended[:0], pos)
	for len(w.ended) > 0 {
		pos := w.ended[len(w.ended)-1] + 1
		w.ended = w.ended[:len(w.ended)-1]
		if w.piece.body[pos] == endOfRule {
			w.ended = append(w.ended, w.piece.uses.of(w.piece.ruleOf[pos])...)
		} else {
			w.behind = append(w.behind, pos)
		}
	}
}

// Singles are the steps to all sequences of one symbol, or to those of some, by symbol. They are
// good until the walker is asked again. Time is linear in the right-hand sides.
func (w *Walker) Singles(some []bool) []Step {
	var at []uint32
	for pos, v := range w.piece.body {
		if !wpp.IsRule(v) && (some == nil || some[v]) {
			at = append(at, uint32(pos))
		}
	}
	w.steps = w.steps[:0]
	w.gather(at)
	return w.steps
}

// gather appends the steps to the first terminals at positions, one for each symbol that stands
// there.
func (w *Walker) gather(at []uint32) {
	first := len(w.steps)
	w.sizes = w.sizes[:0]
	for _, pos := range at {
		i := &w.of[w.number(w.piece.body[pos])]
		if *i == 0 {
			v := w.piece.body[pos]
			w.steps = append(w.steps, Step{w.piece.terminal(v, 0), Bundle{symbol: v, offset: 1}})
			w.sizes = append(w.sizes, 0)
			*i = uint32(len(w.steps))
		}
		b := &w.steps[*i-1].To
		b.Count = saturating.Add(b.Count, w.piece.weight(pos))
		w.sizes[int(*i)-1-first]++
	}
	positions := make([]uint32, len(at))
	made := w.steps[first:]
	for i := range made {
		n := w.sizes[i]
		made[i].To.at, positions = positions[:0:n], positions[n:]
	}
	for _, pos := range at {
		b := &w.steps[w.of[w.number(w.piece.body[pos])]-1].To
		b.at = append(b.at, pos)
	}
	for _, st := range made {
		w.of[w.number(st.To.symbol)] = 0
	}
}

func (w *Walker) number(v uint32) int {
	if wpp.IsRule(v) {
		return w.piece.symbols + wpp.RuleOf(v)
	}
	return int(v)
}

// countOf is how many executions bundles are.
func countOf(bundles []Bundle) (n uint64) {
	for _, b := range bundles {
		n = saturating.Add(n, b.Count)
	}
	return n
}

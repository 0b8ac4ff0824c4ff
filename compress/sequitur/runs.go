package sequitur

import (
	"math"
	"slices"
)

// A run is a symbol that repeats.
type run struct{ symbol, length uint32 }

// Runs fold a stream: each run of two symbols and more is one symbol of the grammar, the same for the same run. Programs wait and scan in runs of any
// length, of which SEQUITUR makes a rule for each bit of it anew.
type runs struct {
	last   run            // the run that the stream ends with, which is not in the grammar yet
	number map[run]uint32 // -> index in all
	all    []run          // run i is the terminal MaxTerminal-i
	folded []uint32       // a buffer
}

// take adds a terminal to the stream. When a run ends by that, it returns what stands for that run.
func (r *runs) take(terminal uint32) (symbol uint32, ok bool) {
	if r.last.symbol == terminal && r.last.length > 0 && r.last.length < math.MaxUint32 {
		r.last.length++
		return 0, false
	}
	symbol, ok = r.end()
	r.last = run{terminal, 1}
	return symbol, ok
}

// end ends the last run, if there is one.
func (r *runs) end() (symbol uint32, ok bool) {
	last := r.last
	r.last = run{}
	if last.length <= 1 {
		return last.symbol, last.length == 1
	}
	i, known := r.number[last]
	if !known {
		i = uint32(len(r.all))
		r.number[last] = i
		r.all = append(r.all, last)
	}
	return MaxTerminal - i, true
}

// fold is take for many; the slice that it returns is used again.
func (r *runs) fold(terminals []uint32) []uint32 {
	r.folded = r.folded[:0]
	for _, t := range terminals {
		if symbol, ok := r.take(t); ok {
			r.folded = append(r.folded, symbol)
		}
	}
	return r.folded
}

// isRun tells terminals that stand for runs.
func (r *runs) isRun(v uint32) bool { return v <= MaxTerminal && v > MaxTerminal-uint32(len(r.all)) }

func (r *runs) bytes() uint64 {
	if r == nil {
		return 0
	}
	const entry = 30 // of the map, about
	return uint64(cap(r.all))*8 + uint64(len(r.number))*entry + uint64(cap(r.folded))*4
}

// unfold replaces in bodies what stands for runs. A run is made of rules that derive powers of two of its symbol; one that the bodies have several times
// is a rule itself. As everywhere, a rule that is used once is put in its place.
func (r *runs) unfold(bodies [][]uint32) [][]uint32 {
	u := unfolding{bodies: bodies, powers: make(map[run]uint32)}
	uses := make([]int, len(r.all))
	for _, body := range bodies {
		for _, v := range body {
			if r.isRun(v) {
				uses[MaxTerminal-v]++
			}
		}
	}
	spelt := make([][]uint32, len(r.all))
	for i, run := range r.all {
		spelt[i] = u.spell(run)
		if uses[i] > 1 && len(spelt[i]) > 1 {
			spelt[i] = []uint32{u.rule(spelt[i])}
		}
	}
	for i, body := range bodies {
		if slices.ContainsFunc(body, r.isRun) {
			u.bodies[i] = splice(body, func(v uint32) []uint32 {
				if r.isRun(v) {
					return spelt[MaxTerminal-v]
				}
				return nil
			})
		}
	}
	return inlineSingles(u.bodies)
}

type unfolding struct {
	bodies [][]uint32
	powers map[run]uint32 // a symbol and a power of two -> what derives it
}

func (u *unfolding) rule(body []uint32) uint32 {
	u.bodies = append(u.bodies, body)
	return RuleSymbol(len(u.bodies) - 1)
}

// spell derives a run of powers of two, the largest first.
func (u *unfolding) spell(r run) (body []uint32) {
	for bit := uint32(1 << 31); bit > 0; bit >>= 1 {
		if r.length&bit != 0 {
			body = append(body, u.power(run{r.symbol, bit}))
		}
	}
	return body
}

func (u *unfolding) power(r run) uint32 {
	if r.length == 1 {
		return r.symbol
	}
	if _, ok := u.powers[r]; !ok {
		half := u.power(run{r.symbol, r.length / 2})
		u.powers[r] = u.rule([]uint32{half, half})
	}
	return u.powers[r]
}

// splice replaces symbols by sequences; those that with has none for stay.
func splice(body []uint32, with func(v uint32) []uint32) []uint32 {
	var spliced []uint32
	for _, v := range body {
		if sequence := with(v); sequence != nil {
			spliced = append(spliced, sequence...)
		} else {
			spliced = append(spliced, v)
		}
	}
	return spliced
}

// inlineSingles puts each rule that is used once in its place, and numbers the others anew. Rules that are used once may use others that are, but not in a
// long chain.
func inlineSingles(bodies [][]uint32) [][]uint32 {
	uses := make([]int, len(bodies))
	for _, body := range bodies {
		for _, v := range body {
			if IsRule(v) {
				uses[RuleOf(v)]++
			}
		}
	}
	isSingle := func(v uint32) bool { return IsRule(v) && uses[RuleOf(v)] == 1 }
	var inline func(v uint32) []uint32
	inline = func(v uint32) []uint32 {
		if isSingle(v) {
			return splice(bodies[RuleOf(v)], inline)
		}
		return nil
	}
	number := make([]uint32, len(bodies))
	var kept [][]uint32
	for r, body := range bodies {
		if r > 0 && uses[r] < 2 {
			continue
		}
		if slices.ContainsFunc(body, isSingle) {
			body = splice(body, inline)
		}
		number[r] = RuleSymbol(len(kept))
		kept = append(kept, body)
	}
	for _, body := range kept {
		for i, v := range body {
			if IsRule(v) {
				body[i] = number[RuleOf(v)]
			}
		}
	}
	return kept
}

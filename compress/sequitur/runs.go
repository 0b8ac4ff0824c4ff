package sequitur

import (
	"math"
	"math/bits"
	"slices"
)

// A run is a symbol that repeats.
type run struct{ symbol, length uint32 }

// Runs fold a stream: each run of two symbols and more is one symbol of the grammar, the same for
// the same run. Programs wait and scan in runs of any length, of which SEQUITUR makes a rule for
// each bit of it anew.
type runs struct {
	last  run      // the run that the stream ends with, which is not in the grammar yet
	all   []run    // run i is the terminal MaxTerminal-i
	slots []uint32 // by hash: index in all plus 1; 0: empty
	steps uint64   // doublings that all take, were none shared
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

// lengthen adds to the run that the stream ends with as many symbols as it may have, of so many.
func (r *runs) lengthen(times uint64) (added uint64) {
	added = min(times, math.MaxUint32-uint64(r.last.length))
	r.last.length += uint32(added)
	return added
}

// end ends the last run, if there is one.
func (r *runs) end() (symbol uint32, ok bool) {
	last := r.last
	r.last = run{}
	if last.length <= 1 {
		return last.symbol, last.length == 1
	}
	return MaxTerminal - r.number(last), true
}

// number returns the index of a run, which may be new.
func (r *runs) number(x run) uint32 {
	if 8*len(r.all) >= 7*len(r.slots) {
		r.grow()
	}
	slot := r.find(x)
	if *slot == 0 {
		r.all = appendTightly(r.all, x)
		r.steps += uint64(bits.Len32(x.length) - 1)
		*slot = uint32(len(r.all))
	}
	return *slot - 1
}

// find returns the slot that a run is in, or may be put into.
func (r *runs) find(x run) *uint32 {
	at, _ := bits.Mul32(digramHash(x.symbol, x.length), uint32(len(r.slots)))
	for r.slots[at] != 0 && r.all[r.slots[at]-1] != x {
		at = (at + 1) % uint32(len(r.slots))
	}
	return &r.slots[at]
}

func (r *runs) grow() {
	r.slots = make([]uint32, len(r.slots)+len(r.slots)/4+8)
	for i, x := range r.all {
		*r.find(x) = uint32(i + 1)
	}
}

// isRun reports whether a terminal stands for a run.
func (r *runs) isRun(v uint32) bool { return v <= MaxTerminal && v > MaxFoldingTerminal }

func (r *runs) bytes() uint64 {
	if r == nil {
		return 0
	}
	return uint64(cap(r.all))*8 + uint64(cap(r.slots))*4
}

// unfoldingBytes is what unfold takes for a moment, at most: the rules of powers, each of which may
// be of one run only.
func (r *runs) unfoldingBytes() uint64 {
	if r == nil {
		return 0
	}
	const eachRun, eachStep = 200, 400
	return uint64(len(r.all))*eachRun + r.steps*eachStep
}

// unfold replaces in bodies what stands for runs. A run is made of rules that derive powers of two
// of its symbol; one that the bodies have several times is a rule itself. As everywhere, a rule
// that is used once is put in its place.
func (r *runs) unfold(bodies [][]uint32) [][]uint32 {
	times := make([]int, len(r.all)) // that a run is in the bodies
	for _, body := range bodies {
		for _, v := range body {
			if r.isRun(v) {
				times[MaxTerminal-v]++
			}
		}
	}
	u := unfolding{base: len(bodies), powers: make(map[run]uint32)}
	spelt := make([][]uint32, len(r.all))
	for i, run := range r.all {
		spelt[i] = u.spell(run)
		if times[i] > 1 && len(spelt[i]) > 1 {
			spelt[i] = []uint32{u.rule(spelt[i])}
		}
		u.use(spelt[i], times[i])
	}
	rules := u.kept()
	for i := range spelt {
		spelt[i] = u.inline(spelt[i])
	}
	for i, body := range bodies {
		if slices.ContainsFunc(body, r.isRun) {
			bodies[i] = splice(body, func(v uint32) []uint32 {
				if r.isRun(v) {
					return spelt[MaxTerminal-v]
				}
				return nil
			})
		}
	}
	return packed(append(bodies, rules...))
}

// packed copies bodies to where they lie one behind the other: what they were made in is kept whole
// by the last of them that is in it, and some are to be kept for long.
func packed(bodies [][]uint32) [][]uint32 {
	symbols := 0
	for _, body := range bodies {
		symbols += len(body)
	}
	arena := make([]uint32, 0, symbols)
	list := make([][]uint32, len(bodies))
	for i, body := range bodies {
		at := len(arena)
		arena = append(arena, body...)
		list[i] = arena[at:len(arena):len(arena)]
	}
	return list
}

// An unfolding makes the rules that derive runs.
type unfolding struct {
	base   int // the first rule's number
	rules  [][]uint32
	uses   []int          // of each
	number []uint32       // of each that is kept: what names it in the end
	powers map[run]uint32 // a symbol and a power of two -> what derives it
}

func (u *unfolding) rule(body []uint32) uint32 {
	u.rules, u.uses = append(u.rules, body), append(u.uses, 0)
	u.use(body, 1)
	return RuleSymbol(u.base + len(u.rules) - 1)
}

// use counts the rules in a body that is used so many times.
func (u *unfolding) use(body []uint32, times int) {
	for _, v := range body {
		if IsRule(v) {
			u.uses[RuleOf(v)-u.base] += times
		}
	}
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

// kept returns the rules that are used more than once, with the others put in their places.
func (u *unfolding) kept() (rules [][]uint32) {
	u.number = make([]uint32, len(u.rules))
	next := u.base
	for i, n := range u.uses {
		if n > 1 {
			u.number[i] = RuleSymbol(next)
			next++
		}
	}
	for i, body := range u.rules {
		if u.number[i] != 0 {
			rules = append(rules, u.inline(body))
		}
	}
	return rules
}

// inline puts rules that are not kept in their places in a body. They may use others that are not,
// as long as powers of two go.
func (u *unfolding) inline(body []uint32) []uint32 {
	var kept [1]uint32
	return splice(body, func(v uint32) []uint32 {
		if !IsRule(v) {
			return nil
		}
		i := RuleOf(v) - u.base
		if u.number[i] == 0 {
			return u.inline(u.rules[i])
		}
		kept[0] = u.number[i]
		return kept[:]
	})
}

// splice replaces symbols by sequences; those that with has none for stay.
func splice(body []uint32, with func(v uint32) []uint32) []uint32 {
	spliced := make([]uint32, 0, len(body)+len(body)/16+4)
	for _, v := range body {
		if sequence := with(v); sequence != nil {
			spliced = append(spliced, sequence...)
		} else {
			spliced = append(spliced, v)
		}
	}
	return spliced
}

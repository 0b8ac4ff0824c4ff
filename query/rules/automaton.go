package rules

import (
	"errors"

	"wpptrace/compress/ops"
)

// An automaton reads symbols one after the other. Each step may be a hit: that of a pattern's end,
// or of a rule's violation. Its states are numbered as they are met, and its table filled as it is
// read. It belongs to one goroutine.
type automaton struct {
	class   []uint32 // symbol -> its class; the symbols of a class are alike
	mask    []uint64 // class -> the atoms that its symbols are in; 0 for marks
	isMark  []bool   // of a class
	start   uint32
	tooMany bool // states: what was read means nothing
	// state and class -> 0 if not known, or twice the next state, plus 1, plus 1 for a hit
	table   []uint32
	resolve func(state, class uint32) (next uint32, hit bool)
}

// errTooComplex says that an automaton on this grammar takes more memory than is set apart for it.
var errTooComplex = errors.New("there is too much to keep in mind: make the pattern shorter, or " +
	"the number of paths that ** stands for smaller")

// mostStates bounds the states of an automaton.
const mostStates = 1 << 14

// gapClass is the class of gaps; that of all other marks is 0.
const gapClass = 1

// classify makes an automaton without steps. Time is linear in the alphabet.
func classify(a *pathNames) *automaton {
	x := &automaton{class: make([]uint32, len(a.mask)), mask: []uint64{0, 0},
		isMark: []bool{true, true}}
	known := make(map[uint64]uint32)
	for sym, mask := range a.mask {
		if s := &a.snapshot.Symbols[sym]; s.IsMark {
			if s.Mark == ops.Gap {
				x.class[sym] = gapClass
			}
			continue
		}
		if _, ok := known[mask]; !ok {
			known[mask] = uint32(len(x.mask))
			x.mask, x.isMark = append(x.mask, mask), append(x.isMark, false)
		}
		x.class[sym] = known[mask]
	}
	return x
}

// next is the state after a symbol.
func (x *automaton) next(state, symbol uint32) (to uint32, hit bool) {
	return x.after(state, x.class[symbol])
}

// after is next for any symbol of a class.
func (x *automaton) after(state, class uint32) (to uint32, hit bool) {
	at := int(state)*len(x.mask) + int(class)
	if at >= len(x.table) || x.table[at] == 0 {
		x.fill(state, class, at)
	}
	v := x.table[at] - 1
	return v >> 1, v&1 == 1
}

func (x *automaton) fill(state, class uint32, at int) {
	for at >= len(x.table) {
		x.table = append(x.table, make([]uint32, 64*len(x.mask))...)
	}
	to, hit := x.resolve(state, class)
	x.table[at] = to<<1 + 1
	if hit {
		x.table[at]++
	}
}

// A reading says where a pattern may begin.
type reading int

const (
	anywhere reading = iota // at any symbol: hits are the ends of what matches
	here                    // at the first symbol: hits are the ends of what matches from there on
)

// A subset automaton is in all positions at once that a pattern may be in.
type subsets struct {
	automaton *automaton
	positions *positions
	reading   reading
	sets      []bitset
	number    map[string]uint32
}

// newSubsets makes the automaton that finds a pattern. What matches crosses no mark.
func newSubsets(a *pathNames, p *positions, r reading) *automaton {
	x := &subsets{automaton: classify(a), positions: p, reading: r, number: make(map[string]uint32)}
	begin := newBitset()
	begin.set(0)
	x.automaton.start = x.intern(begin)
	x.automaton.resolve = x.step
	return x.automaton
}

// intern numbers a set.
func (x *subsets) intern(set bitset) uint32 {
	key := set.key()
	n, ok := x.number[key]
	if !ok {
		if len(x.sets) == mostStates {
			x.automaton.tooMany = true
			return 0
		}
		n = uint32(len(x.sets))
		x.number[key], x.sets = n, append(x.sets, set)
	}
	return n
}

func (x *subsets) step(state, class uint32) (uint32, bool) {
	to := newBitset()
	if !x.automaton.isMark[class] {
		for i := range x.sets[state].all() {
			to.add(x.positions.follow[i])
		}
		for i := range to.all() {
			if !x.reads(i, class) {
				to.unset(i)
			}
		}
	}
	hit := to.meets(x.positions.last)
	if x.reading == anywhere {
		to.set(0)
	}
	for i := range to.all() {
		if to.has(i) {
			to.remove(x.positions.covers[i])
		}
	}
	return x.intern(to), hit
}

func (x *subsets) reads(position int, class uint32) bool {
	p := x.positions.path[position]
	mask := x.automaton.mask[class]
	is := p.atom == anyPath || mask>>p.atom&1 == 1
	for _, atom := range p.nor {
		is = is || mask>>atom&1 == 1
	}
	return is != p.not
}

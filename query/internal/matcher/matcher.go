// Package matcher finds all occurrences of patterns in one reading, by the automaton of Aho and
// Corasick (1975).
package matcher

import (
	"cmp"
	"math"
	"slices"
)

// A Matcher is the automaton of patterns over symbols. A state is the longest end of what was read
// that a pattern begins with; state 0 is that of nothing. It belongs to one goroutine, for it
// remembers what it has found out.
type Matcher struct {
	child map[edge]uint32 // but for the root's, which are in first
	first []uint32        // symbol -> the root's child, 0 if there is none
	fail  []uint32        // state -> the longest proper suffix of it that is a state
	// state -> the longest suffix of it, itself included, that is a pattern, or 0
	match []uint32
	rank  []uint32     // state -> the first of the patterns that equals it, or None
	depth []uint32     // state -> its length
	taken []transition // some of those met last
}

// A transition is what Next has found out: traces take few of them, again and again.
type transition struct{ state, symbol, to uint32 }

const transitions = 1 << 14

// None is the rank of no pattern: greater than that of any.
const None uint32 = math.MaxUint32

type edge struct{ state, symbol uint32 }

// New makes the automaton of patterns, which are not empty and whose symbols are below a number.
// Time and memory are linear in both, but for sorting the states.
func New(patterns [][]uint32, symbols int) *Matcher {
	m := &Matcher{child: make(map[edge]uint32), first: make([]uint32, symbols),
		taken: make([]transition, transitions)}
	m.addState(0)
	into := []edge{{}} // state -> the edge that leads to it
	for rank, p := range patterns {
		state := uint32(0)
		for _, sym := range p {
			to := m.down(state, sym)
			if to == 0 {
				to = m.addState(m.depth[state] + 1)
				m.setDown(state, sym, to)
				into = append(into, edge{state, sym})
			}
			state = to
		}
		m.rank[state] = min(m.rank[state], uint32(rank))
	}
	m.link(into)
	return m
}

func (m *Matcher) addState(depth uint32) uint32 {
	m.fail = append(m.fail, 0)
	m.match = append(m.match, 0)
	m.rank = append(m.rank, None)
	m.depth = append(m.depth, depth)
	return uint32(len(m.depth) - 1)
}

func (m *Matcher) down(state, symbol uint32) uint32 {
	if state == 0 {
		return m.first[symbol]
	}
	return m.child[edge{state, symbol}]
}

func (m *Matcher) setDown(state, symbol, to uint32) {
	if state == 0 {
		m.first[symbol] = to
	} else {
		m.child[edge{state, symbol}] = to
	}
}

// link computes fail and match, from the shortest states to the longest.
func (m *Matcher) link(into []edge) {
	states := make([]uint32, 0, len(into))
	for state := 1; state < len(into); state++ {
		states = append(states, uint32(state))
	}
	slices.SortStableFunc(states,
		func(a, b uint32) int { return cmp.Compare(m.depth[a], m.depth[b]) })
	for _, state := range states {
		if e := into[state]; e.state != 0 {
			m.fail[state] = m.find(m.fail[e.state], e.symbol)
		}
		m.match[state] = m.match[m.fail[state]]
		if m.rank[state] != None {
			m.match[state] = state
		}
	}
}

// Next is the state after reading a symbol. Time is constant on average.
func (m *Matcher) Next(state, symbol uint32) uint32 {
	if state == 0 {
		return m.first[symbol]
	}
	known := &m.taken[(state*0x9e3779b1>>8^symbol*0x85ebca6b)%transitions]
	if known.state != state || known.symbol != symbol {
		*known = transition{state, symbol, m.find(state, symbol)}
	}
	return known.to
}

func (m *Matcher) find(state, symbol uint32) uint32 {
	for {
		to := m.down(state, symbol)
		if to != 0 || state == 0 {
			return to
		}
		state = m.fail[state]
	}
}

// Longest is the longest pattern that ends where a state was reached, as a state: 0, if none does.
func (m *Matcher) Longest(state uint32) uint32 { return m.match[state] }

// Shorter is the longest of the patterns that end where another, given as a state, does, and are
// shorter: 0, if there is none.
func (m *Matcher) Shorter(pattern uint32) uint32 { return m.match[m.fail[pattern]] }

// Rank is the index of a pattern that a state is, the least of equal ones.
func (m *Matcher) Rank(pattern uint32) uint32 { return m.rank[pattern] }

// Length is how many symbols a pattern that a state is has.
func (m *Matcher) Length(pattern uint32) int { return int(m.depth[pattern]) }

// RankOf is the rank of a sequence that is a pattern. It takes time linear in its length.
func (m *Matcher) RankOf(pattern []uint32) uint32 {
	state := uint32(0)
	for _, sym := range pattern {
		state = m.down(state, sym)
	}
	return m.rank[state]
}

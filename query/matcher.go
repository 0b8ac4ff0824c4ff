package query

import (
	"cmp"
	"math"
	"slices"
)

// A matcher is the automaton of Aho and Corasick: it finds all occurrences of patterns in one
// reading. State 0 is its root.
type matcher struct {
	child map[edge]uint32 // but for the root's, which are in first
	first []uint32        // symbol -> the root's child, 0 if there is none
	fail  []uint32        // state -> the longest proper suffix of it that is a state
	// state -> the longest suffix of it, itself included, that is a pattern, or 0
	match []uint32
	rank  []uint32     // state -> the first of the patterns that equals it, or noPattern
	depth []uint32     // state -> its length
	taken []transition // some of those met last
}

// A transition is what next has found out: traces take few of them, again and again.
type transition struct{ state, symbol, to uint32 }

const transitions = 1 << 14

const noPattern = math.MaxUint32

type edge struct{ state, symbol uint32 }

// newMatcher makes the automaton of patterns over symbols. Time and memory are linear in both, but
// for sorting the states.
func newMatcher(patterns [][]uint32, symbols int) *matcher {
	m := &matcher{child: make(map[edge]uint32), first: make([]uint32, symbols),
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

func (m *matcher) addState(depth uint32) uint32 {
	m.fail = append(m.fail, 0)
	m.match = append(m.match, 0)
	m.rank = append(m.rank, noPattern)
	m.depth = append(m.depth, depth)
	return uint32(len(m.depth) - 1)
}

func (m *matcher) down(state, symbol uint32) uint32 {
	if state == 0 {
		return m.first[symbol]
	}
	return m.child[edge{state, symbol}]
}

func (m *matcher) setDown(state, symbol, to uint32) {
	if state == 0 {
		m.first[symbol] = to
	} else {
		m.child[edge{state, symbol}] = to
	}
}

// link computes fail and match, from the shortest states to the longest.
func (m *matcher) link(into []edge) {
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
		if m.rank[state] != noPattern {
			m.match[state] = state
		}
	}
}

// next is the state after reading a symbol.
func (m *matcher) next(state, symbol uint32) uint32 {
	if state == 0 {
		return m.first[symbol]
	}
	known := &m.taken[(state*0x9e3779b1>>8^symbol*0x85ebca6b)%transitions]
	if known.state != state || known.symbol != symbol {
		*known = transition{state, symbol, m.find(state, symbol)}
	}
	return known.to
}

func (m *matcher) find(state, symbol uint32) uint32 {
	for {
		to := m.down(state, symbol)
		if to != 0 || state == 0 {
			return to
		}
		state = m.fail[state]
	}
}

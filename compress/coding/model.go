package coding

import (
	"math/bits"

	"wpptrace/compress/sequitur"
)

// A set is a kind of decisions, which are mixed alike.
type set int

const (
	ends     set = iota // the body ends here
	isNew               // the symbol is a rule not met before, whose body follows
	leftmost            // which terminal a symbol's expansion begins with
	newValue            // the value of a terminal not met before
	stays               // the symbol is this one, no rule that begins with it
	stood               // the same, where this one seems to have stood behind the symbol before
	which               // which rule that begins with it
	sets
)

// The kinds of symbols that were coded last are a context.
const (
	aTerminal = iota
	aRule
	aNewRule
)

// A frame is a body of which a part has been coded.
type frame struct {
	symbols     int
	first, last int32 // nodes
	tail        tail
}

// A model is a grammarModel that mixes contexts.
type model struct {
	predictor
	tree
	open  []frame
	tail  tail // of all that has been coded
	kinds uint64
	value uint32 // of the last new terminal
	pairs []uint64
	up    []uint32 // the rest of the way to the symbol to write
}

func newModel(c *coder, symbols uint64, mixed int) *model {
	m := &model{predictor: newPredictor(c, symbols, mixed), tree: tree{byValue: map[uint32]int32{}}}
	m.pairs = make([]uint64, 1<<min(max(bits.Len64(symbols)-2, 0), 18))
	m.look()
	m.begin()
	return m
}

// begin opens the body of the next rule.
func (m *model) begin() {
	m.open = append(m.open, frame{})
	m.byRule = append(m.byRule, -1)
}

// end closes the body of a rule, which is now the next symbol of the body around it.
func (m *model) end(rule int) {
	f := m.open[len(m.open)-1]
	m.open = m.open[:len(m.open)-1]
	if len(m.open) == 0 {
		return
	}
	m.stand(m.addRule(rule, f.first, f.tail), aNewRule)
}

// stand makes a node the next symbol of the innermost body.
func (m *model) stand(id int32, kind uint64) {
	f := &m.open[len(m.open)-1]
	if f.symbols == 0 {
		f.first = id
	} else {
		m.pairs[m.pair(f.last, id)>>6] |= 1 << (m.pair(f.last, id) & 63)
	}
	f.last = id
	f.symbols++
	f.tail.add(&m.nodes[id].tail)
	m.kinds = m.kinds<<2&15 | kind
}

// pair is the bit that says whether two nodes have been neighbours. Two pairs may share one, for
// the writer as for the reader.
func (m *model) pair(left, right int32) uint64 {
	return hash(uint64(left), uint64(right)) & uint64(64*len(m.pairs)-1)
}

// stood is 1 where a node seems to have stood behind the last symbol, and 0 where not.
func (m *model) stood(id int32) set {
	f := &m.open[len(m.open)-1]
	if f.symbols == 0 {
		return 0
	}
	k := m.pair(f.last, id)
	return set(m.pairs[k>>6] >> (k & 63) & 1)
}

// look makes the contexts of what comes behind the tail.
func (m *model) look() {
	h, n := uint64(0), 0
	for i := range m.before {
		for ; n < orders[i]; n++ {
			h = hash(h, uint64(m.tail.ranks[farthest-1-n])+1)
		}
		m.before[i] = hash(h, uint64(i))
	}
}

// place describes where the next symbol stands.
func (m *model) place() uint64 {
	return standing(m.kinds, len(m.open), m.open[len(m.open)-1].symbols)
}

// standing describes where a symbol stands, by the kinds of those before, how many bodies are open,
// and how many symbols there are of the innermost.
func standing(kinds uint64, open, symbols int) uint64 {
	return kinds<<8 | uint64(min(open, 3))<<4 | uint64(min(symbols, 3))
}

func (m *model) flag(kind set, member uint32, y bool) bool {
	decision := uint32(0)
	if y {
		decision = 1
	}
	return m.code(kind, member, decision) == 1
}

// ends codes whether the innermost body ends. Only the start rule's may be empty.
func (m *model) ends(y bool) bool {
	if m.open[len(m.open)-1].symbols == 0 && len(m.open) > 1 {
		return false
	}
	m.decide(hash(uint64(ends), m.place()))
	return m.flag(ends, 0, y)
}

// isNew codes whether the next symbol is a new rule.
func (m *model) isNew(y bool) bool {
	m.decide(hash(uint64(isNew), m.place()))
	return m.flag(isNew, 0, y)
}

// symbol codes a symbol that is no new rule.
func (m *model) symbol(symbol uint32) uint32 {
	id := m.leftmost(symbol)
	for len(m.nodes[id].children) > 0 {
		m.decide(hash(uint64(which), uint64(id)))
		kind := stays + m.stood(id)
		if m.flag(kind, uint32(kind)<<8, len(m.up) == 0) {
			break
		}
		id = m.child(id)
	}
	m.tail.add(&m.nodes[id].tail)
	m.look()
	kind := uint64(aTerminal)
	if m.nodes[id].parent >= 0 {
		kind = aRule
	}
	m.stand(id, kind)
	return m.nodes[id].symbol
}

// leftmost codes the terminal that a symbol begins with, and leaves the way from there to the
// symbol to be coded.
func (m *model) leftmost(symbol uint32) int32 {
	rank := uint32(len(m.terminals))
	if id := m.of(symbol); id >= 0 {
		m.up, id = m.way(m.up[:0], id)
		rank = m.nodes[id].rank
	}
	rank = m.number(leftmost, m.kinds&3, rank, uint32(len(m.terminals))+1)
	if int(rank) == len(m.terminals) {
		return m.addTerminal(m.newTerminal(symbol))
	}
	return m.terminals[rank]
}

// newTerminal codes the value of a new terminal: how far it is from the one expected, which is one
// more than the last new one's.
func (m *model) newTerminal(value uint32) uint32 {
	far := m.number(newValue, 0, fold((value-m.value-1)&sequitur.MaxTerminal),
		sequitur.MaxTerminal+1)
	m.value = (m.value + 1 + unfold(far)) & sequitur.MaxTerminal
	return m.value
}

// fold makes small numbers of small differences up and down, modulo 2^31; unfold is its inverse.
func fold(d uint32) uint32 {
	if d > sequitur.MaxTerminal/2 {
		return (sequitur.MaxTerminal-d)<<1 | 1
	}
	return d << 1
}

func unfold(n uint32) uint32 {
	if n&1 == 1 {
		return sequitur.MaxTerminal - n>>1
	}
	return n >> 1
}

// child codes which child of a node the way goes on to.
func (m *model) child(id int32) int32 {
	children := m.nodes[id].children
	rank := uint32(0)
	if n := len(m.up); n > 0 {
		rank = m.up[n-1]
		m.up = m.up[:n-1]
	}
	return children[m.number(which, uint64(id), rank, uint32(len(children)))]
}

// number codes a number below n: its length in bits, then its bits below the first.
func (m *model) number(kind set, about uint64, v, n uint32) uint32 {
	about = hash(uint64(kind), about)
	m.decide(about)
	length, longest := uint32(0), uint32(bits.Len32(n-1))
	for length < longest && m.flag(kind, length, length < uint32(bits.Len32(v))) {
		length++
	}
	if length < 2 {
		return length
	}
	k := uint32(1)
	for i := range length - 1 {
		if i%3 == 0 { // as many as a line holds well
			about = hash(about, uint64(length)<<32|uint64(k))
			m.decide(about)
		}
		k = k<<1 | m.code(kind, k, v>>(length-2-i)&1)
	}
	return min(k, n-1)
}

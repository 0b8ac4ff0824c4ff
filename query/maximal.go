package query

import "math"

// A maximality finds which hot sequences no symbol makes longer without making them rarer. What a
// hot sequence becomes by a symbol that always comes before or behind it costs more and occurs as
// often: it is hot too, so the search meets it, and marks both what it is without its last symbol
// and what it is without its first. A nil maximality does nothing.
type maximality struct {
	nodes []extension // by node of the search's trie
	// sequences one symbol shorter than those being added: beginning and last symbol -> node
	shorter  map[trieNode]uint32
	children map[trieNode]uint32 // those being added
}

// An extension is what is known of a sequence.
type extension struct {
	count    uint64
	cost     uint64    // of one execution
	suffix   uint32    // the node of the sequence without its first symbol, or noNode
	children [2]uint32 // the nodes of what it grows to, from one up to another
	hot      bool
	longer   bool // a longer one occurs as often
}

const (
	rootNode = math.MaxUint32     // the empty sequence
	noNode   = math.MaxUint32 - 1 // a sequence that the search has left off
)

func newMaximality() *maximality {
	return &maximality{shorter: map[trieNode]uint32{}, children: map[trieNode]uint32{}}
}

// add takes notice of the last node of the trie. Time is constant.
func (m *maximality) add(trie []trieNode, count, cost uint64, hot bool) {
	if m == nil {
		return
	}
	node := uint32(len(trie) - 1)
	last := trie[node]
	e := extension{count: count, cost: cost, hot: hot, suffix: m.suffixOf(last)}
	m.nodes = append(m.nodes, e)
	m.children[last] = node
	for _, n := range [...]uint32{last.parent, e.suffix} {
		if n < noNode && m.nodes[n].count == count {
			m.nodes[n].longer = true
		}
	}
}

// goesOnAs returns the sequence without its first symbol, one that the search has followed, if it
// occurs as often: then that symbol comes before each of its occurrences, and what follows them is
// the same, as often. What the search left off as never hot from the shorter one, it would from the
// longer one: that may grow by one symbol less, and none costs more than the costliest that occurs
// as often. If there is none such, it is nil.
func (m *maximality) goesOnAs(node uint32) *extension {
	if m == nil {
		return nil
	}
	e := &m.nodes[node]
	if e.suffix >= noNode || m.nodes[e.suffix].count != e.count || e.count == math.MaxUint64 {
		return nil
	}
	return &m.nodes[e.suffix]
}

// setChildren says which nodes, up to but without the last, are what a node's sequence grows to.
func (m *maximality) setChildren(node uint32, first, last int) {
	if m != nil {
		m.nodes[node].children = [2]uint32{uint32(first), uint32(last)}
	}
}

func (m *maximality) suffixOf(last trieNode) uint32 {
	if last.parent == rootNode {
		return rootNode
	}
	suffix := m.nodes[last.parent].suffix
	if n, ok := m.shorter[trieNode{suffix, last.symbol}]; ok && suffix != noNode {
		return n
	}
	return noNode
}

// nextLength says that what is added next is one symbol longer than what was added last.
func (m *maximality) nextLength() {
	if m == nil {
		return
	}
	m.shorter, m.children = m.children, m.shorter
	clear(m.children)
}

// reportMaximal adds the maximal hot sequences to what was found.
func (x *hotSearch) reportMaximal() {
	if x.maximal == nil {
		return
	}
	for n := range x.trie {
		if e := &x.maximal.nodes[n]; e.hot && !e.longer {
			x.report(x.trie[n], e.count, e.cost)
		}
	}
}

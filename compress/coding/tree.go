package coding

import "wpptrace/compress/sequitur"

// A node is a symbol that has been met: a terminal, or a rule whose body is complete. Its children
// are the rules whose bodies begin with it, so that a symbol is coded as the way down to it from
// the terminal that its expansion begins with. What stood before predicts that terminal and that
// way well, but hardly the symbol: where SEQUITUR has been, no two symbols stand side by side
// twice.
type node struct {
	symbol   uint32
	parent   int32  // -1: a terminal
	rank     uint32 // among the parent's children, or among the terminals
	depth    int32
	children []int32
	tail     tail
}

// deepest bounds the way to a node. A rule that would lie deeper hangs on the terminal.
const deepest = 32

// A tail is the last terminals of an expansion, by rank, the last one last.
type tail struct {
	length int32
	ranks  [farthest]uint32
}

// add appends an expansion.
func (t *tail) add(u *tail) {
	copy(t.ranks[:], t.ranks[u.length:])
	copy(t.ranks[farthest-u.length:], u.ranks[farthest-u.length:])
	t.length = min(t.length+u.length, farthest)
}

// A tree holds all nodes.
type tree struct {
	nodes     []node
	terminals []int32 // nodes, by rank

	byValue map[uint32]int32 // the nodes of terminals
	byRule  []int32          // the nodes of rules, by number; -1: not complete
}

// of returns the node of a symbol, or -1.
func (t *tree) of(symbol uint32) int32 {
	if sequitur.IsRule(symbol) {
		return t.byRule[sequitur.RuleOf(symbol)]
	}
	if id, ok := t.byValue[symbol]; ok {
		return id
	}
	return -1
}

// way appends the ranks of the nodes on the way up from a node to its terminal, which it returns.
func (t *tree) way(ranks []uint32, id int32) ([]uint32, int32) {
	for t.nodes[id].parent >= 0 {
		ranks = append(ranks, t.nodes[id].rank)
		id = t.nodes[id].parent
	}
	return ranks, id
}

func (t *tree) addTerminal(value uint32) int32 {
	id, rank := int32(len(t.nodes)), uint32(len(t.terminals))
	n := node{symbol: value, parent: -1, rank: rank}
	n.tail.length = 1
	n.tail.ranks[farthest-1] = rank
	t.nodes = append(t.nodes, n)
	t.terminals = append(t.terminals, id)
	t.byValue[value] = id
	return id
}

// addRule adds a rule whose body begins with a node and ends in a tail.
func (t *tree) addRule(rule int, first int32, last tail) int32 {
	if t.nodes[first].depth == deepest {
		for t.nodes[first].parent >= 0 {
			first = t.nodes[first].parent
		}
	}
	id, parent := int32(len(t.nodes)), &t.nodes[first]
	n := node{symbol: sequitur.RuleSymbol(rule), parent: first, rank: uint32(len(parent.children)),
		depth: parent.depth + 1, tail: last}
	parent.children = append(parent.children, id)
	t.nodes = append(t.nodes, n)
	t.byRule[rule] = id
	return id
}

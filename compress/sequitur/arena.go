package sequitur

// An arena holds the nodes.
type arena struct {
	nodes []node
	used  uint32 // nodes that have been handed out
	free  uint32 // head of the list of free nodes, linked by next; 0: none
	live  int    // nodes in use, guards included
}

// at returns node n. The pointer is good until the next take.
func (a *arena) at(n uint32) *node { return &a.nodes[n] }

// take hands out a node.
func (a *arena) take(value uint32) uint32 {
	a.live++
	if n := a.free; n != 0 {
		a.free = a.nodes[n].next
		a.nodes[n].value = value
		return n
	}
	n := a.used
	if a.used++; int(n) == len(a.nodes) {
		a.nodes = resize(a.nodes, int(n+n/6+64))
	}
	a.nodes[n].value = value
	return n
}

func (a *arena) giveBack(n uint32) {
	a.live--
	a.nodes[n] = node{value: freeValue, next: a.free}
	a.free = n
}

// appendTightly is append, but that it leaves no more than a sixth of the slice for what is to
// come: append may double it.
func appendTightly[T any](s []T, x T) []T {
	if len(s) == cap(s) {
		s = append(make([]T, 0, len(s)+len(s)/6+8), s...)
	}
	return append(s, x)
}

package circles

import "slices"

// Successors appends the nodes to which one leads in a graph to a list. It may append one twice.
type Successors func(list []int, node int) []int

// A Walk finds strongly connected components (Tarjan 1972, iterative). What it keeps by node serves
// one search after the other.
type Walk struct {
	graph  Successors
	count  int
	number []int  // by node: when the walk came to it, from 1
	low    []int  // by node: the lowest number known to be in its component
	on     []bool // by node: it is on the stack
	stack  []int
	visits []visit
	succ   []int // of the nodes in visits, one after the other
	order  []int // the nodes of those in found, one component after the other
	found  []Component

	all      []int // nodes
	enclosed []int // by node: the last circle that Break looked at and it is in, from 1
	last     int
}

// A Component is strongly connected: each of its nodes leads to each other.
type Component struct {
	Nodes  []int
	Circle bool // a node of it leads to itself, be it by others
}

// A visit is a node whose successors are being walked.
type visit struct {
	node           int
	from, next, to int // its successors in the walk's succ, and the next to look at
}

// NewWalk returns a walk of graphs of so many nodes.
func NewWalk(nodes int) *Walk {
	w := &Walk{number: make([]int, nodes), low: make([]int, nodes), on: make([]bool, nodes),
		all: make([]int, nodes), enclosed: make([]int, nodes)}
	for n := range w.all {
		w.all[n] = n
	}
	return w
}

// Components returns the strongly connected components of a graph, each behind those that it leads
// to. The list is valid until the walk is used again; the nodes in it stay. Cost: linear in the
// nodes and edges.
func (w *Walk) Components(graph Successors) []Component { return w.components(w.all, graph) }

// Circles returns the nodes of those components that have a circle. Cost: that of Components.
func (w *Walk) Circles(graph Successors) [][]int { return w.circles(w.all, graph) }

// Break has each component that has a circle broken, and what circles are left in it then. breakOne
// takes edges off the graph, or nodes, and reports whether it took off any: if not, the circle is
// left. in says which nodes are of that component; it is valid until breakOne returns. Break
// reports whether any circle was broken. Cost: that of Components, for each circle in itself.
func (w *Walk) Break(
	graph Successors, breakOne func(circle []int, in func(node int) bool) bool,
) (some bool) {
	in := func(node int) bool { return w.enclosed[node] == w.last }
	within := func(list []int, node int) []int {
		from := len(list)
		list = graph(list, node)
		leavesIt := func(to int) bool { return !in(to) }
		return list[:from+len(slices.DeleteFunc(list[from:], leavesIt))]
	}
	for queue := w.Circles(graph); len(queue) > 0; queue = queue[1:] {
		w.last++
		for _, n := range queue[0] {
			w.enclosed[n] = w.last
		}
		if breakOne(queue[0], in) {
			some = true
			queue = append(queue, w.circles(queue[0], within)...)
		}
	}
	return some
}

func (w *Walk) circles(roots []int, graph Successors) (list [][]int) {
	for _, c := range w.components(roots, graph) {
		if c.Circle {
			list = append(list, c.Nodes)
		}
	}
	return list
}

// components finds those of some nodes and of what these lead to.
func (w *Walk) components(roots []int, graph Successors) []Component {
	w.graph, w.count, w.order, w.found = graph, 0, make([]int, 0, len(roots)), w.found[:0]
	for _, root := range roots {
		if w.number[root] == 0 {
			w.walk(root)
		}
	}
	for _, n := range w.order {
		w.number[n] = 0
	}
	return w.found
}

func (w *Walk) walk(root int) {
	for w.enter(root); len(w.visits) > 0; {
		v := &w.visits[len(w.visits)-1]
		if v.next == v.to {
			done := *v
			w.visits = w.visits[:len(w.visits)-1]
			w.leave(done)
			continue
		}
		n := w.succ[v.next]
		v.next++
		if w.number[n] == 0 {
			w.enter(n)
		} else if w.on[n] {
			w.low[v.node] = min(w.low[v.node], w.number[n])
		}
	}
}

func (w *Walk) enter(node int) {
	w.count++
	w.number[node], w.low[node], w.on[node] = w.count, w.count, true
	w.stack = append(w.stack, node)
	from := len(w.succ)
	w.succ = w.graph(w.succ, node)
	w.visits = append(w.visits, visit{node, from, from, len(w.succ)})
}

func (w *Walk) leave(v visit) {
	if w.low[v.node] == w.number[v.node] {
		k := len(w.stack) - 1
		for w.stack[k] != v.node {
			k--
		}
		from := len(w.order)
		w.order = append(w.order, w.stack[k:]...)
		w.stack = w.stack[:k]
		nodes := w.order[from:len(w.order):len(w.order)]
		for _, n := range nodes {
			w.on[n] = false
		}
		w.found = append(w.found,
			Component{nodes, len(nodes) > 1 || slices.Contains(w.succ[v.from:v.to], v.node)})
	}
	w.succ = w.succ[:v.from]
	if len(w.visits) > 0 {
		up := w.visits[len(w.visits)-1].node
		w.low[up] = min(w.low[up], w.low[v.node])
	}
}

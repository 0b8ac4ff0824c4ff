package planner

import "slices"

// A componentWalk finds strongly connected components of a plan's routines (Tarjan 1972,
// iterative). What it keeps by routine serves one search after the other.
type componentWalk struct {
	routines []*routine // of the plan, by ID
	enclosed []int      // by routine: the last enclosure that it was in
	last     int

	graph  callGraph
	count  int
	number []int  // by routine: when the walk came to it, from 1
	low    []int  // by routine: the lowest number known to be in its component
	on     []bool // by routine: it is on the stack
	stack  []*routine
	calls  []visit
	succ   []*routine // of the routines in calls, one after the other
	order  []*routine // of those in found, one component after the other
	found  []component
}

// A component is strongly connected.
type component struct {
	routines []*routine
	circle   bool // one may come from a routine of it to the same
}

// A visit is a routine whose successors are being walked.
type visit struct {
	r              *routine
	from, next, to int // its successors in the walk's succ, and the next to look at
}

func newComponentWalk(routines []*routine) *componentWalk {
	n := len(routines)
	return &componentWalk{routines: routines, enclosed: make([]int, n), number: make([]int, n),
		low: make([]int, n), on: make([]bool, n)}
}

// An enclosure is some of a plan's routines.
type enclosure struct {
	enclosed []int
	id       int
}

// enclose makes an enclosure of routines, until they are in another.
func (w *componentWalk) enclose(routines []*routine) enclosure {
	w.last++
	for _, r := range routines {
		w.enclosed[r.ID] = w.last
	}
	return enclosure{w.enclosed, w.last}
}

// within is what of a graph leads into an enclosure.
func within(s enclosure, graph callGraph) callGraph {
	return func(r *routine, b int) *routine {
		if t := graph(r, b); t != nil && s.enclosed[t.ID] == s.id {
			return t
		}
		return nil
	}
}

// circles returns those components that have a circle.
func (w *componentWalk) circles(routines []*routine, graph callGraph) (circles [][]*routine) {
	for _, c := range w.components(routines, graph) {
		if c.circle {
			circles = append(circles, c.routines)
		}
	}
	return circles
}

// components returns the strongly connected components of those routines that are traced, and of
// what the graph leads to from them, each behind those that it leads to. The list is valid until
// the next call; the routines in it stay.
func (w *componentWalk) components(routines []*routine, graph callGraph) []component {
	w.graph, w.count, w.order, w.found = graph, 0, make([]*routine, 0, len(routines)), w.found[:0]
	for _, root := range routines {
		if w.number[root.ID] == 0 && root.traced() {
			w.walk(root)
		}
	}
	for _, r := range w.order {
		w.number[r.ID] = 0
	}
	return w.found
}

func (w *componentWalk) walk(root *routine) {
	for w.enter(root); len(w.calls) > 0; {
		v := &w.calls[len(w.calls)-1]
		if v.next == v.to {
			done := *v
			w.calls = w.calls[:len(w.calls)-1]
			w.leave(done)
			continue
		}
		t := w.succ[v.next]
		v.next++
		if w.number[t.ID] == 0 {
			w.enter(t)
		} else if w.on[t.ID] {
			w.low[v.r.ID] = min(w.low[v.r.ID], w.number[t.ID])
		}
	}
}

func (w *componentWalk) enter(r *routine) {
	w.count++
	w.number[r.ID], w.low[r.ID], w.on[r.ID] = w.count, w.count, true
	w.stack = append(w.stack, r)
	from := len(w.succ)
	w.addSuccessors(r)
	w.calls = append(w.calls, visit{r, from, from, len(w.succ)})
}

func (w *componentWalk) addSuccessors(r *routine) {
	if !r.traced() { // no more: it is about to be planned around
		return
	}
	for _, b := range r.calls.leads {
		if t := w.graph(r, b); t != nil {
			w.succ = append(w.succ, t)
		}
	}
}

func (w *componentWalk) leave(v visit) {
	id := v.r.ID
	if w.low[id] == w.number[id] {
		k := len(w.stack) - 1
		for w.stack[k] != v.r {
			k--
		}
		from := len(w.order)
		w.order = append(w.order, w.stack[k:]...)
		w.stack = w.stack[:k]
		routines := w.order[from:len(w.order):len(w.order)]
		for _, r := range routines {
			w.on[r.ID] = false
		}
		w.found = append(w.found,
			component{routines, len(routines) > 1 || slices.Contains(w.succ[v.from:v.to], v.r)})
	}
	w.succ = w.succ[:v.from]
	if len(w.calls) > 0 {
		up := w.calls[len(w.calls)-1].r.ID
		w.low[up] = min(w.low[up], w.low[id])
	}
}

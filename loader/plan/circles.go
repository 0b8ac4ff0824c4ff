package plan

import "slices"

// circles returns the strongly connected components of the observed routines under next that
// contain a circle (Tarjan 1972, iterative).
func circles(routines []*Routine, next func(*Routine) []*Routine) [][]*Routine {
	n := len(routines)
	w := &componentWalk{next: next, number: make([]int, n), low: make([]int, n), on: make([]bool, n)}
	for _, root := range routines {
		if w.number[root.ID] == 0 && root.Observed() {
			w.walk(root)
		}
	}
	return w.circles
}

// A componentWalk is the state of circles.
type componentWalk struct {
	next    func(*Routine) []*Routine
	count   int
	number  []int  // by routine: when the walk came to it, from 1
	low     []int  // by routine: the lowest number known to be in its component
	on      []bool // by routine: it is on the stack
	stack   []*Routine
	calls   []visit
	circles [][]*Routine
}

// A visit is a routine whose successors are being walked.
type visit struct {
	r    *Routine
	succ []*Routine
	i    int
}

func (w *componentWalk) walk(root *Routine) {
	for w.enter(root); len(w.calls) > 0; {
		v := &w.calls[len(w.calls)-1]
		if v.i == len(v.succ) {
			done := *v
			w.calls = w.calls[:len(w.calls)-1]
			w.leave(done)
			continue
		}
		t := v.succ[v.i]
		v.i++
		if w.number[t.ID] == 0 {
			w.enter(t)
		} else if w.on[t.ID] {
			w.low[v.r.ID] = min(w.low[v.r.ID], w.number[t.ID])
		}
	}
}

func (w *componentWalk) enter(r *Routine) {
	w.count++
	w.number[r.ID], w.low[r.ID], w.on[r.ID] = w.count, w.count, true
	w.stack = append(w.stack, r)
	w.calls = append(w.calls, visit{r: r, succ: w.next(r)})
}

func (w *componentWalk) leave(v visit) {
	id := v.r.ID
	if w.low[id] == w.number[id] {
		k := len(w.stack) - 1
		for w.stack[k] != v.r {
			k--
		}
		component := slices.Clone(w.stack[k:])
		w.stack = w.stack[:k]
		for _, r := range component {
			w.on[r.ID] = false
		}
		if len(component) > 1 || slices.Contains(v.succ, v.r) {
			w.circles = append(w.circles, component)
		}
	}
	if len(w.calls) > 0 {
		up := w.calls[len(w.calls)-1].r.ID
		w.low[up] = min(w.low[up], w.low[id])
	}
}

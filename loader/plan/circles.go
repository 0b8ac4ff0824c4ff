package plan

import (
	"math"
	"slices"
)

// breakCircles makes a word certain on every circle of calls and tail jumps, and then keeps the
// callers without a word few (rule 3). It reports whether it added any. What is first is known of
// all observed routines.
func (p *Plan) breakCircles() (changed bool) {
	for _, circle := range circles(p.Routines, silentCallees) {
		p.breakCircle(circle, (*Routine).silentCallee)
		changed = true
	}
	if changed {
		return true
	}
	for _, circle := range circles(p.Routines, unspokenCallees) {
		changed = p.breakCircle(circle, (*Routine).silentCall) || changed
	}
	return changed || p.shortenChains()
}

// shortenChains makes a caller speak wherever more than MaxSilentCallers in a row would not have. It
// reports whether there was one. It expects that no circle of what they enter has such a caller.
func (p *Plan) shortenChains() (changed bool) {
	below := make([]int, len(p.Routines)) // by routine: the most silent callers in a row from it on
	for _, component := range components(p.Routines, unspokenCallees) {
		longest := 0
		for _, r := range component {
			n, spoke := r.longestChain(below)
			longest, changed = max(longest, n), changed || spoke
		}
		for _, r := range component {
			below[r.ID] = longest
		}
	}
	return changed
}

// longestChain is the length of the longest row of silent callers from the routine on, by that of
// those which it enters. It makes the routine speak before a call that would make the row too long.
func (r *Routine) longestChain(below []int) (longest int, spoke bool) {
	if !r.Observed() { // no more: it is about to be planned around
		return 0, false
	}
	for _, b := range r.leads {
		t := r.unspokenCallee(b)
		if t == nil {
			continue
		}
		n := below[t.ID]
		if r.isCall(b) {
			n++
		}
		if n <= MaxSilentCallers {
			longest = max(longest, n)
			continue
		}
		r.unsettled, spoke = true, true
		if !r.probe(b) {
			break
		}
	}
	return longest, spoke
}

// enters lists the routines that an observed one leads to, as callee tells of each of its blocks.
func (r *Routine) enters(callee func(*Routine, int) *Routine) (list []*Routine) {
	if !r.Observed() { // no more: it is about to be planned around
		return nil
	}
	for _, b := range r.leads {
		if t := callee(r, b); t != nil {
			list = append(list, t)
		}
	}
	return list
}

func silentCallees(r *Routine) []*Routine   { return r.enters((*Routine).silentCallee) }
func unspokenCallees(r *Routine) []*Routine { return r.enters((*Routine).unspokenCallee) }

// silentCallee is the observed routine that block b may enter before its own routine has made a
// word.
func (r *Routine) silentCallee(b int) *Routine {
	if !r.first[b] || r.probed[b].on {
		return nil
	}
	if kind, t := r.Callee(b); kind == Known {
		return t
	}
	return nil
}

// silentCall is the observed routine that block b calls before its own routine has made a word.
func (r *Routine) silentCall(b int) *Routine {
	if !r.isCall(b) {
		return nil
	}
	return r.silentCallee(b)
}

// unspokenCallee is the observed routine that block b enters without leaving a caller that has made
// a word: what jumps is no caller of what it jumps to.
func (r *Routine) unspokenCallee(b int) *Routine {
	if r.isCall(b) {
		return r.silentCallee(b)
	}
	_, t := r.Callee(b)
	return t
}

// breakCircle probes the blocks within the circle for which callee tells of a routine, or the entry,
// of the routine where that is cheapest. A routine without a place for a probe is left out. It
// reports whether there was such a block.
func (p *Plan) breakCircle(circle []*Routine, callee func(*Routine, int) *Routine) bool {
	var best *Routine
	var blocks []int
	least := math.Inf(1)
	for _, r := range circle {
		list, price := r.breaks(circle, callee)
		if total := max(r.entry, neverEntered) * price; len(list) > 0 && (total < least || best == nil) {
			best, blocks, least = r, list, total
		}
	}
	for _, b := range blocks {
		if best.unsettled = true; !best.probe(b) {
			break
		}
	}
	return best != nil
}

// breaks lists the blocks whose probes make a word certain wherever the routine goes on along a
// circle, and what they cost for one activation.
func (r *Routine) breaks(circle []*Routine, callee func(*Routine, int) *Routine) (blocks []int, price float64) {
	for _, b := range r.leads {
		if t := callee(r, b); t != nil && slices.Contains(circle, t) {
			blocks = append(blocks, b)
			price += r.price(b)
		}
	}
	if e := r.price(r.Entry); len(blocks) > 0 && e < price {
		return []int{r.Entry}, e
	}
	return blocks, price
}

// circles returns the strongly connected components of the observed routines under next that
// contain a circle.
func circles(routines []*Routine, next func(*Routine) []*Routine) [][]*Routine {
	return slices.DeleteFunc(components(routines, next), func(c []*Routine) bool {
		return len(c) == 1 && !slices.Contains(next(c[0]), c[0])
	})
}

// components returns the strongly connected components of the observed routines under next, each
// behind those that it leads to (Tarjan 1972, iterative).
func components(routines []*Routine, next func(*Routine) []*Routine) [][]*Routine {
	n := len(routines)
	w := &componentWalk{next: next, number: make([]int, n), low: make([]int, n), on: make([]bool, n)}
	for _, root := range routines {
		if w.number[root.ID] == 0 && root.Observed() {
			w.walk(root)
		}
	}
	return w.components
}

// A componentWalk is the state of components.
type componentWalk struct {
	next       func(*Routine) []*Routine
	count      int
	number     []int  // by routine: when the walk came to it, from 1
	low        []int  // by routine: the lowest number known to be in its component
	on         []bool // by routine: it is on the stack
	stack      []*Routine
	calls      []visit
	components [][]*Routine
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
		w.components = append(w.components, component)
	}
	if len(w.calls) > 0 {
		up := w.calls[len(w.calls)-1].r.ID
		w.low[up] = min(w.low[up], w.low[id])
	}
}

package planner

import (
	"math"

	"wpptrace/loader/plan"
)

// A callGraph says which traced routine a block leads to in it; nil if to none.
type callGraph func(r *routine, b int) *routine

// breakCircles makes an event certain on every circle of calls and tail jumps, and then keeps the
// callers without an event few (rule 3: no circles). It reports whether it added any. It expects
// markFirst to have run for all traced routines.
func (p *planner) breakCircles() bool {
	w := newCallWalk(p.routines)
	return w.breakCircles(calleeBeforeEvent, calleeBeforeEvent) ||
		w.breakCircles(calleeLeavingNoEvent, callBeforeEvent) ||
		w.shortenRows(calleeLeavingNoEvent, callBeforeEvent, plan.MaxProbeFreeCallers) ||
		w.shortenRows(jumpBeforeEvent, jumpBeforeEvent, plan.MaxProbeFreeJumps)
}

// knownCallee is the traced routine that block b calls or jumps to.
func knownCallee(r *routine, b int) *routine { return r.calls.known(b) }

// knownJumpee is the traced routine that block b jumps to.
func knownJumpee(r *routine, b int) *routine {
	if r.calls.isCall(b) {
		return nil
	}
	return r.calls.known(b)
}

// calleeBeforeEvent is the traced routine that block b may enter before its own routine has made a
// event.
func calleeBeforeEvent(r *routine, b int) *routine {
	if !r.first[b] || r.probed[b].on {
		return nil
	}
	return r.calls.known(b)
}

// callBeforeEvent is the traced routine that block b calls before its own routine has made an
// event.
func callBeforeEvent(r *routine, b int) *routine {
	if !r.calls.isCall(b) {
		return nil
	}
	return calleeBeforeEvent(r, b)
}

// jumpBeforeEvent is the traced routine that block b jumps to before its own routine has made an
// event.
func jumpBeforeEvent(r *routine, b int) *routine {
	if r.calls.isCall(b) {
		return nil
	}
	return calleeBeforeEvent(r, b)
}

// calleeLeavingNoEvent is the traced routine that block b enters without leaving a caller that has
// made an event: what jumps is no caller of what it jumps to, whether it has made an event or not.
func calleeLeavingNoEvent(r *routine, b int) *routine {
	if r.calls.isCall(b) {
		return calleeBeforeEvent(r, b)
	}
	return r.calls.known(b)
}

// breakCircles breaks all circles of a graph by probes on those of its edges that are breakable,
// where that is cheapest. A circle that has none of these is left. It reports whether it broke any.
func (w *callWalk) breakCircles(graph, breakable callGraph) (changed bool) {
	return w.walk.Break(w.successors(graph), func(circle []int, in func(id int) bool) bool {
		return w.breakCircle(circle, func(r *routine, b int) *routine {
			if t := breakable(r, b); t != nil && in(t.ID) {
				return t
			}
			return nil
		})
	})
}

// breakCircle probes the blocks of the edges, or the entry, of the routine where that is cheapest.
// A routine without a place for a probe is left out. It reports whether the circle has any of the
// edges.
func (w *callWalk) breakCircle(circle []int, breakable callGraph) bool {
	var best *routine
	var blocks []int
	least := math.Inf(1)
	for _, n := range circle {
		r := w.routines[n]
		list, price := breaks(r, breakable)
		if total := max(r.costs.activations, neverEntered) * price; len(list) > 0 &&
			(total < least || best == nil) {
			best, blocks, least = r, list, total
		}
	}
	if best == nil {
		return false
	}
	best.addProbes(blocks)
	return true
}

// breaks lists the blocks whose probes make an event certain before each of the edges, and what
// they cost for one activation.
func breaks(r *routine, breakable callGraph) (blocks []int, price float64) {
	if !r.traced() { // no more: it is about to be planned around
		return nil, 0
	}
	for _, b := range r.calls.leads {
		if breakable(r, b) != nil {
			blocks = append(blocks, b)
			price += r.costs.price(b)
		}
	}
	if e := r.costs.price(r.Entry); len(blocks) > 0 && e < price {
		return []int{r.Entry}, e
	}
	return blocks, price
}

// addProbes probes blocks.
func (r *routine) addProbes(blocks []int) {
	r.unsettled = true
	for _, b := range blocks {
		if !r.probe(b) {
			return
		}
	}
	r.markFirst()
}

// shortenRows adds probes wherever more edges that count would come in a row: the first
// that has to does, whatever that costs. It reports whether there was one. It expects that no
// circle of the graph has such an edge.
func (w *callWalk) shortenRows(graph, counts callGraph, most int) (changed bool) {
	behind := make([]int, len(w.routines)) // by routine: the most such edges in a row from it on
	tooLong := func(r *routine, b int) *routine {
		if t := counts(r, b); t != nil && behind[t.ID] == most {
			return t
		}
		return nil
	}
	for _, c := range w.walk.Components(w.successors(graph)) {
		longest := 0
		for _, n := range c.Nodes {
			r := w.routines[n]
			if blocks, _ := breaks(r, tooLong); len(blocks) > 0 {
				r.addProbes(blocks)
				changed = true
			}
			longest = max(longest, longestRow(r, graph, counts, behind))
		}
		for _, n := range c.Nodes {
			behind[n] = longest
		}
	}
	return changed
}

// longestRow is how many edges that count come in a row at most from the routine on, by those that
// it leads to.
func longestRow(r *routine, graph, counts callGraph, behind []int) (longest int) {
	if !r.traced() {
		return 0
	}
	for _, b := range r.calls.leads {
		t := graph(r, b)
		if t == nil {
			continue
		}
		n := behind[t.ID]
		if counts(r, b) != nil {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

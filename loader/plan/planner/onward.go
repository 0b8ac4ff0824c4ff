package planner

import (
	"slices"

	"wpptrace/loader/plan"
)

// onlyCaller returns the return address of the one call that enters the routine, 0 if there may be
// another or a jump does (rule 14: only callers).
func onlyCaller(r *routine) (ra uint64) {
	if r.standing.entered || len(r.calls.callers) != 1 || !r.calls.callers[0].traced() {
		return 0
	}
	caller := r.calls.callers[0]
	for _, b := range caller.calls.leads {
		if caller.calls.known(b) != r {
			continue
		}
		if ra > 0 || !caller.calls.isCall(b) || caller.Blocks[b].Depth < 0 {
			return 0
		}
		ra = caller.Blocks[b].Hi
	}
	return ra
}

// runsProbeFree reports whether an activation can run without an event, from an entry to its end or
// to a call that never returns.
func (r *routine) runsProbeFree() bool {
	if r.probed[r.Entry].on && len(r.entries) == 1 {
		return false // the usual case
	}
	seen := make(blockSet, len(r.Blocks))
	for queue := slices.Clone(r.entries); len(queue) > 0; {
		b := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if b == exit {
			return true
		}
		if seen[b] || r.probed[b].on {
			continue
		}
		seen[b] = true
		next := r.Blocks[b].After()
		if len(next) == 0 {
			return true
		}
		queue = append(queue, next...)
	}
	return false
}

// onward is by block the block whose call of a traced routine an activation makes next, before an
// event of its own (rule 15: next calls); or noCall, or unknownCall.
type onward struct {
	r         *routine
	probeFree []bool // by routine: an activation runs without an event, be it on one route alone
	next      []int
}

const (
	noCall      = -1 - iota // an event comes before any
	unknownCall             // several calls may come, or something else
)

// newOnward finds that out. Cost: the routine's size; where many jumps lead backwards, some times
// that.
func newOnward(r *routine, probeFree []bool) onward {
	o := onward{r, probeFree, make([]int, len(r.Blocks))}
	for b := range o.next {
		o.next[b] = noCall
	}
	if !slices.ContainsFunc(r.calls.leads, func(b int) bool { return r.calls.known(b) != nil }) {
		return o
	}
	for changed := true; changed; {
		changed = false
		for b, next := range slices.Backward(o.next) {
			if !r.probed[b].on {
				o.next[b] = o.behind(b, r.Blocks[b].After())
			}
			changed = changed || next != o.next[b]
		}
	}
	return o
}

// behind is which call comes next where the instructions of block b have run, and one of these
// nodes would come then.
func (o *onward) behind(b int, nodes []int) int {
	r := o.r
	to := r.calls.known(b)
	switch kind, _ := r.calls.callee(b); {
	case kind == plan.NoCallee, kind == plan.Harmless && r.calls.isCall(b):
		return o.first(nodes)
	case to == nil, !r.calls.isCall(b), r.Blocks[b].Depth < 0:
		return unknownCall
	}
	if o.probeFree[to.ID] && either(b, o.first(nodes)) != b {
		return unknownCall // for it may come back without an event
	}
	return b
}

// first is which call comes next from either of these nodes.
func (o *onward) first(nodes []int) int {
	if len(nodes) == 0 {
		return unknownCall
	}
	next := noCall
	for _, n := range nodes {
		if n == exit {
			return unknownCall
		}
		next = either(next, o.next[n])
	}
	return next
}

func either(a, b int) int {
	switch {
	case a == noCall, a == b:
		return b
	case b == noCall:
		return a
	}
	return unknownCall
}

// after returns the return address of the call that comes next after an event of block b, if one
// of these nodes comes next; 0 if that is not known.
func (o *onward) after(b int, nodes ...int) uint64 {
	next := o.behind(b, nodes)
	if next < 0 || !o.r.callsAfterEvent(next) {
		return 0
	}
	return o.r.Blocks[next].Hi
}

// callsAfterEvent reports whether an event of the activation certainly comes before the call of
// block b.
func (r *routine) callsAfterEvent(b int) bool { return !r.first[b] || r.probed[b].on }

package verify

import (
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// checkOnlyCallers: where a routine is taken to be entered by one call, no other code enters it
// (rule 14: only callers). classify has run.
func (v *verifier) checkOnlyCallers() {
	entrances := make(map[*routine][]uint64, len(v.routines)) // 0 for a jump
	for _, r := range v.routines {
		for b, to := range r.callees {
			switch {
			case to == nil:
			case r.Blocks[b].IsCall():
				entrances[to] = append(entrances[to], r.Blocks[b].Hi)
			default:
				entrances[to] = append(entrances[to], 0)
			}
		}
	}
	for _, r := range v.traced {
		is := func(ra uint64) bool {
			return ra == 0 || !r.entered && slices.Equal(entrances[r], []uint64{ra})
		}
		for b := range r.Blocks {
			c, isCall := v.plan.Calls[r.Blocks[b].Hi]
			if s := r.sites[b]; s != nil && !is(s.Caller) ||
				isCall && r.Blocks[b].IsCall() && !is(c.Caller) {
				r.fault("it is taken to be entered by one call alone")
				break
			}
		}
		for _, s := range r.sites {
			if s == nil || s.Caller == 0 {
				continue
			}
			if _, ok := v.plan.Calls[s.Caller]; !ok {
				r.fault(fmt.Sprintf("the call before %x, which enters it, is not in the table of "+
					"calls", s.Caller))
				break
			}
		}
	}
}

// checkNextCalls: where a call is taken to be the one that may come before the next event of the
// activation, no other does, and neither does its end (rule 15: next calls).
func (v *verifier) checkNextCalls(r *routine) {
	for b, s := range r.sites {
		if s == nil {
			continue
		}
		block := &r.Blocks[b]
		for outcome, ra := range s.NextCall {
			if ra == 0 {
				continue
			}
			c, ok := v.plan.Calls[ra]
			onward := onwardWalk{r: r, ra: ra, seen: newByNode[bool](r)}
			next := block.After()
			if s.Condition < plan.NoCondition && block.End == cfg.Jcc {
				next = block.Succ[1-outcome : 2-outcome]
			}
			if !ok || !c.AfterEvent || onward.leaves(b, next) || onward.strays() {
				r.fault(fmt.Sprintf("the call before %x is taken for the only one that may come "+
					"after an event", ra), r.way(b))
				return
			}
		}
	}
}

// runsProbeFree reports whether an activation can run without an event, from an entry to its end or
// to a call that never returns.
func (r *routine) runsProbeFree() bool {
	if r.runs == nil {
		way := r.walker.probeFreeRoute(r.entries, func(n int) bool {
			return n == cfg.Exit || r.sites[n] == nil && len(r.Blocks[n].After()) == 0
		})
		free := way != nil
		r.runs = &free
	}
	return *r.runs
}

// An onwardWalk goes along the probe-free routes of an activation, those behind its calls too.
type onwardWalk struct {
	r     *routine
	ra    uint64 // where the only call that may be met returns to
	seen  byNode[bool]
	queue []int
}

// strays reports whether another call than that, or the end, is come to from what is in the queue.
func (w *onwardWalk) strays() bool {
	for ; len(w.queue) > 0; w.queue = w.queue[1:] {
		n := w.queue[0]
		if n == cfg.Exit {
			return true
		}
		if w.r.sites[n] == nil && w.leaves(n, w.r.Blocks[n].After()) {
			return true
		}
	}
	return false
}

// leaves adds what comes behind block b, where that goes to one of these nodes, to the queue, and
// reports whether the block itself ends in another call, or in the activation's end.
func (w *onwardWalk) leaves(b int, next []int) bool {
	r := w.r
	calls := r.Blocks[b].IsCall()
	switch kind := r.kinds[b]; {
	case kind == plan.NoCallee || kind == plan.Harmless && calls:
		if len(next) == 0 {
			return true
		}
	case kind != plan.Known || !calls || r.Blocks[b].Hi != w.ra:
		return true
	case !r.callees[b].runsProbeFree():
		return false
	}
	for _, n := range next {
		if at := w.seen.at(n); !*at {
			*at = true
			w.queue = append(w.queue, n)
		}
	}
	return false
}

package verify

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// findOutgoing finds the routines in whose course external code may run.
func (v *verifier) findOutgoing() {
	callers := map[*routine][]*routine{}
	var queue []*routine
	mark := func(r *routine) {
		if !r.external {
			r.external = true
			queue = append(queue, r)
		}
	}
	for _, r := range v.traced {
		for b, to := range r.callees {
			if to != nil {
				callers[to] = append(callers[to], r)
			} else if r.enters(b) {
				mark(r)
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, r := range callers[queue[0]] {
			mark(r)
		}
	}
}

// findRestarted finds the routines that external code enters, and those that they call or
// jump to before an event, and so on.
func (v *verifier) findRestarted() {
	var renew func(r *routine)
	renew = func(r *routine) {
		if r == nil || r.restarted || !r.Traced() {
			return
		}
		r.restarted = true
		for b, to := range r.callees {
			if r.first[b] && r.sites[b] == nil {
				renew(to)
			}
		}
	}
	for _, r := range v.traced {
		if r.returnsOut {
			renew(r)
		}
	}
}

// checkAnew: external code may catch what leaves an activation that such code has
// begun, and begin another in the same place. No event that comes first then, be it of the routine
// or of what it calls, comes as the first activation goes on as well (rule 12: restarts).
func (v *verifier) checkAnew(r *routine) {
	if !r.restarted {
		return
	}
	calls := func(n int) bool {
		return n != cfg.Exit && r.sites[n] == nil && r.callees[n] != nil && r.opens(n)
	}
	if way := r.walker.probeFreeRoute(r.entries, calls); way != nil {
		r.fault("what may leave it from within is called before an event", way)
		return
	}
	begins := func(n int) bool { return n != cfg.Exit && r.first[n] }
	for b := range r.Blocks {
		block := &r.Blocks[b]
		var from []int
		if r.opens(b) && block.End != cfg.NoReturn {
			from = append(from, block.Succ[0])
		}
		if block.IsCall() && (r.enters(b) || r.callees[b] != nil && r.callees[b].external) {
			from = append(from, r.landings(b)...)
		}
		if way := r.walker.probeFreeRoute(from, begins); way != nil {
			r.fault("a new activation may be taken for one that goes on", append(r.way(b), way...))
			return
		}
	}
	unsaid := func(n int) bool {
		return n != cfg.Exit && r.sites[n] == nil && r.kinds[n] == plan.Unknown &&
			r.Blocks[n].IsCall()
	}
	r.eachStart(func(s start) {
		groups := s.outcomes(r)
		switch {
		case s.event == none:
			return
		case s.table != none:
			groups = [][]int{{s.target}} // nothing is called before the switch
		}
		for _, nodes := range groups {
			if r.walker.probeFreeRoute(nodes, unsaid) == nil {
				continue
			}
			if way := r.walker.probeFreeRoute(nodes, begins); way != nil {
				r.fault("a new activation may be taken for one that has not come to its call",
					append(r.way(s.event), way...))
			}
		}
	})
}

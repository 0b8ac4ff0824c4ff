package verify

import (
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// classify finds out what each block calls or jumps to, and whom external code may
// enter.
func (v *verifier) classify() {
	for _, r := range v.routines {
		for b := range r.Blocks {
			if r.Traced() && r.ReturnsTwice(b) && !slices.Contains(r.again, r.Blocks[b].Succ[0]) {
				r.again = append(r.again, r.Blocks[b].Succ[0])
			}
			r.kinds[b], r.callees[b] = v.callee(r, b)
		}
	}
	var queue []*routine
	reach := func(r *routine) {
		if !r.returnsOut {
			r.returnsOut = true
			queue = append(queue, r)
		}
	}
	enter := func(r *routine) {
		r.entered = true
		reach(r)
	}
	for _, r := range v.routines {
		switch {
		case !r.Traced():
			for _, to := range r.callees {
				if to != nil && to != r {
					enter(to)
				}
			}
		case len(r.Others) > 0, v.plan.Program.AddressTaken(r.Addr),
			slices.Contains([]string{"main", "_init", "_fini"}, r.Symbol):
			enter(r)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] { // whoever is jumped to returns in the jumper's place
		for b, to := range queue[0].callees {
			if to != nil && !queue[0].Blocks[b].IsCall() {
				reach(to)
			}
		}
	}
}

// callee returns what kind of code block b enters as it ends, and the routine if that is traced.
func (v *verifier) callee(r *routine, b int) (plan.Callee, *routine) {
	block := &r.Blocks[b]
	leaves := block.End == cfg.Tail || block.End == cfg.Jcc && block.Succ[0] < 0
	switch {
	case block.End == cfg.TailInd:
		return plan.Unknown, nil
	case !block.IsCall() && !leaves:
		return plan.NoCallee, nil
	}
	to, name := v.plan.Program.Callee(r.Routine.Routine, b)
	switch {
	case to != nil && v.routines[to.ID].Traced():
		return plan.Known, v.routines[to.ID]
	case to != nil && entersNothing(to), v.plan.Imports.IsHarmless(name) &&
		block.End != cfg.NoReturn:
		return plan.Harmless, nil
	case block.Insns[len(block.Insns)-1].Kind == x86.CallInd:
		return plan.Unknown, nil
	}
	return plan.External, nil
}

// entersNothing reports whether a routine, of which all code is known, has no instruction that
// leads elsewhere but to its caller.
func entersNothing(r *cfg.Routine) bool {
	for b := range r.Blocks {
		block := &r.Blocks[b]
		switch block.End {
		case cfg.Call, cfg.CallInd, cfg.Tail, cfg.TailInd, cfg.NoReturn, cfg.Trap, cfg.Unresolved:
			return false
		}
		if slices.Contains(block.Succ, -1) || slices.ContainsFunc(block.Insns,
			func(q cfg.Insn) bool { return q.Kind == x86.Syscall }) {
			return false
		}
	}
	return r.LeftOut == ""
}

// enters reports whether block b enters code that may call back.
func (r *routine) enters(b int) bool {
	return r.kinds[b] == plan.Unknown || r.kinds[b] == plan.External
}

// checkCallees: the plan has the routine call what it calls, and takes no routine for probe-free
// whose ends the callers do not imply (rule 1: implied activations).
func (v *verifier) checkCallees(r *routine) {
	for b := range r.Blocks {
		kind, to := r.Callee(b)
		if kind != r.kinds[b] || to != nil && v.routines[to.ID] != r.callees[b] {
			r.fault(fmt.Sprintf("what the block at %x enters is of kind %d, not %d", r.Blocks[b].Lo,
				r.kinds[b], kind))
			break
		}
	}
	if r.probeFree && r.entered {
		r.fault("it may end without an event, and external code may enter it")
	}
	if r.probeFree && r.Faulty {
		r.fault("it may end without an event, and faults may lead to its landing pad")
	}
	if r.Faulty && mayFaultFirst(r) {
		r.fault("a fault may lead to its landing pad before its first event")
	}
}

// mayFaultFirst reports whether something in the block that the routine is entered by may fault
// before its event.
func mayFaultFirst(r *routine) bool {
	s := r.sites[r.Entry]
	return s == nil || slices.ContainsFunc(r.Blocks[r.Entry].Insns[:s.Insn], cfg.Insn.MayFault)
}

// checkFirstCalls: an event comes before code is entered that may call back and that no event
// announces (rule 6: external calls).
func (v *verifier) checkFirstCalls(r *routine) {
	for b := range r.Blocks {
		if r.first[b] && r.sites[b] == nil && r.kinds[b] == plan.Unknown {
			r.fault("code that may call back is entered before an event",
				r.walker.probeFreeRoute(r.entries, func(n int) bool { return n == b }))
			return
		}
	}
}

// findOpen finds the routines around whose end without an event code may be called back that they,
// or what they call, have entered: they jump to it, or end without an event after a call of it, or
// fork.
func (v *verifier) findOpen() {
	callers := map[*routine][]*routine{}
	var queue []*routine
	mark := func(r *routine) {
		if !r.open {
			r.open = true
			queue = append(queue, r)
		}
	}
	for _, r := range v.traced {
		ends := r.backwards(func(n int) bool { return n == cfg.Exit })
		for b := range r.Blocks {
			block := &r.Blocks[b]
			last := !block.IsCall() // what it jumps to returns in its place
			if block.CallReturns() {
				last = *ends.at(block.Succ[0])
			}
			switch {
			case !last:
			case r.enters(b):
				mark(r)
			case r.callees[b] != nil:
				callers[r.callees[b]] = append(callers[r.callees[b]], r)
			}
		}
		if r.ambiguous {
			mark(r)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, r := range callers[queue[0]] {
			mark(r)
		}
	}
}

// backwards marks the nodes from which a probe-free route can come, within one activation, to one
// that is looked for; those themselves too.
func (r *routine) backwards(is func(n int) bool) byNode[bool] {
	mark, before := newByNode[bool](r), newByNode[[]int](r)
	var queue []int
	for b := range r.Blocks {
		if r.sites[b] == nil {
			for _, n := range r.Blocks[b].After() {
				*before.at(n) = append(*before.at(n), b)
			}
		}
	}
	for n := cfg.Exit; n < len(r.Blocks); n++ {
		if is(n) {
			*mark.at(n) = true
			queue = append(queue, n)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, b := range *before.at(queue[0]) {
			if !*mark.at(b) {
				*mark.at(b) = true
				queue = append(queue, b)
			}
		}
	}
	return mark
}

// opens reports whether external code may call back as long as nothing makes an event after the
// call that ends block b.
func (r *routine) opens(b int) bool {
	return r.Blocks[b].IsCall() && (r.enters(b) || r.callees[b] != nil && r.callees[b].open)
}

// checkOpenCalls: after a call of external code, or of what may have ended without an event
// after one, an event comes before the next that no event announces, and before the end of an
// activation that external code may have begun (rule 6: external calls).
func (v *verifier) checkOpenCalls(r *routine) {
	if r.open && !r.MayLeaveCallOpen() {
		r.fault("it may end without an event around a call of external code, and the plan does " +
			"not say so")
	}
	is := func(n int) bool {
		return n == cfg.Exit && r.returnsOut || n != cfg.Exit && r.kinds[n] == plan.Unknown &&
			r.sites[n] == nil
	}
	bad := r.backwards(is)
	for b := range r.Blocks {
		block := &r.Blocks[b]
		if !block.CallReturns() || !*bad.at(block.Succ[0]) || !r.opens(b) {
			continue
		}
		way := append(r.way(b), r.walker.probeFreeRoute(block.Succ[:1], is)...)
		what := "what is called back may come from the first or from the last call"
		if way[len(way)-1] == RoutineEnd {
			what = "what is called back may come from the call, or from the caller after the end"
		}
		r.fault(what, way[:1], way)
		return
	}
}

// checkLandings: after the last event of a traced routine each place in its caller comes either
// by an exception, or a second return, that it let out, or by ordinary flow (rule 5: other
// entrances).
func (v *verifier) checkLandings(r *routine) {
	for b := range r.Blocks {
		if r.enters(b) || !r.opens(b) {
			continue
		}
		if list := r.landings(b); len(list) > 0 {
			if m := r.walker.walk(start{event: b, nodes: slices.Concat(r.Blocks[b].After(), list),
				table: none}); m != nil {
				r.fault("a place may come by an exception, or a second return, or by ordinary flow",
					m.ways...)
				return
			}
		}
	}
}

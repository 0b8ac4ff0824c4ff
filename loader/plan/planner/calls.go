package planner

import (
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// callee is what block b calls, or tail-jumps to; the routine if it is Known.
func (r *routine) callee(b int) (plan.Callee, *routine) { return r.calls[b].kind, r.calls[b].to }

// observedCallee is the observed routine that block b calls or jumps to.
func (r *routine) observedCallee(b int) *routine { return r.calls[b].to }

// jumpee is the observed routine that block b jumps to.
func (r *routine) jumpee(b int) *routine {
	if r.isCall(b) {
		return nil
	}
	return r.observedCallee(b)
}

// A calling is what a block calls, or jumps to.
type calling struct {
	kind plan.Callee
	call bool     // by a call instruction
	to   *routine // nil unless Known
}

// isCall reports whether block b ends in a call instruction. It does not look at the block, which is
// far away in memory as a rule.
func (r *routine) isCall(b int) bool { return r.calls[b].call }

// A destination is where a block calls or jumps to, whatever of it is observed.
type destination struct {
	to        *routine    // of the program; nil if it is none, or not known
	otherwise plan.Callee // what it is if that is not observed
	call      bool        // by a call instruction
	twice     bool        // it may return more than once
}

// calling is what a block calls, now that it is known what is observed.
func (d *destination) calling() calling {
	c := calling{kind: d.otherwise, call: d.call}
	switch {
	case d.to == nil:
	case d.to.traced():
		c.kind, c.to = plan.Known, d.to
	case callsNothing(d.to.Routine):
		c.kind = plan.Harmless
	}
	return c
}

// findLeads finds the blocks that call, or jump to another routine, and where they lead.
func (r *routine) findLeads() {
	n := 0
	for b := range r.Blocks {
		if mayLead(&r.Blocks[b]) {
			n++
		}
	}
	r.leads, r.destinations = make([]int, 0, n), make([]destination, 0, n)
	for b := range r.Blocks {
		if mayLead(&r.Blocks[b]) {
			r.leads, r.destinations = append(r.leads, b), append(r.destinations, r.destination(b))
		}
	}
}

// mayLead reports whether control goes from the end of a block to another routine, or may.
func mayLead(b *cfg.Block) bool {
	switch b.End {
	case cfg.Call, cfg.CallInd, cfg.NoReturn, cfg.Tail, cfg.TailInd:
		return true
	}
	return b.End == cfg.Jcc && b.Succ[0] < 0
}

func (r *routine) destination(b int) (d destination) {
	block := &r.Blocks[b]
	if block.End == cfg.TailInd {
		return destination{otherwise: plan.Unknown}
	}
	d.call = block.IsCall()
	callee, name := r.planner.program.Callee(r.Routine, b)
	if callee != nil {
		d.to = r.planner.routines[callee.ID]
	}
	d.twice = r.planner.program.CallReturnsTwice(r.Routine, b)
	switch {
	case r.planner.imports.IsHarmless(name) && block.End != cfg.NoReturn:
		d.otherwise = plan.Harmless
	case block.Insns[len(block.Insns)-1].Kind != x86.CallInd:
		d.otherwise = plan.External
	default:
		d.otherwise = plan.Unknown
	}
	return d
}

// callsNothing reports whether a routine, whose code is known, runs nothing but itself: what is
// true of the functions named harmless is to be seen here.
func callsNothing(r *cfg.Routine) bool {
	if r.LeftOut != "" {
		return false
	}
	for b := range r.Blocks {
		switch r.Blocks[b].End {
		case cfg.Fall, cfg.Jmp, cfg.Table, cfg.Ret:
		case cfg.Jcc:
			if slices.Contains(r.Blocks[b].Succ, -1) {
				return false
			}
		default:
			return false
		}
		for _, q := range r.Blocks[b].Insns {
			if q.Kind == x86.Syscall {
				return false
			}
		}
	}
	return true
}

// returnsTwice reports whether the call that ends block b may return more than once, as setjmp
// does.
func (r *routine) returnsTwice(b int) bool {
	i, leads := slices.BinarySearch(r.leads, b)
	return leads && r.destinations[i].twice
}

// classify finds for each routine who may enter it: Silent and rootable.
func (p *planner) classify() {
	p.each(func(r *routine) bool {
		r.callees, r.jumpees = r.callees[:0], r.jumpees[:0]
		for i, b := range r.leads {
			c := r.destinations[i].calling()
			if r.calls[b] = c; c.kind == plan.Known {
				r.callees = append(r.callees, c.to)
				if !c.call {
					r.jumpees = append(r.jumpees, c.to)
				}
			}
		}
		if r.traced() {
			r.findOnward()
		}
		return false
	})
	var inCircle []bool
	parallel.Both(p.findReentries, func() { inCircle = p.tailCircles() })
	fromOutside := make([]bool, len(p.routines))
	for _, q := range p.routines {
		for _, t := range q.callees {
			if !q.traced() && t != q {
				fromOutside[t.ID] = true
			}
		}
	}
	for i, r := range p.routines {
		r.rootable = fromOutside[i] || len(r.Others) > 0 || p.program.AddressTaken(r.Addr) || r.Symbol == "main" || r.Symbol == "_init" || r.Symbol == "_fini"
		r.silent = !r.rootable && !inCircle[i] && !r.Faulty
	}
	for again := true; again; { // whoever is tail-jumped to returns to the jumper's caller
		again = false
		for _, q := range p.routines {
			if !q.rootable || !q.traced() {
				continue
			}
			for _, t := range q.jumpees {
				if !t.rootable {
					t.rootable, again = true, true
				}
			}
		}
	}
}

// findReentries finds out which routines may be entered again before they end: those on circles,
// and those out of which code that is not observed runs.
func (p *planner) findReentries() {
	for _, r := range p.routines {
		r.callers = r.callers[:0]
	}
	var queue []*routine
	for _, r := range p.routines {
		r.circle, r.goesOut, r.shifts = 0, false, false
		for _, b := range r.leads {
			kind, _ := r.callee(b)
			r.goesOut = r.goesOut || kind == plan.External || kind == plan.Unknown
			r.shifts = r.shifts || kind == plan.Known && r.isCall(b) && r.Blocks[b].Depth < 0
		}
		if r.goesOut {
			queue = append(queue, r)
		}
		for _, t := range r.callees {
			if n := len(t.callers); n == 0 || t.callers[n-1] != r {
				t.callers = append(t.callers, r)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, r := range queue[i].callers {
			if !r.goesOut {
				r.goesOut = true
				queue = append(queue, r)
			}
		}
	}
	for i, circle := range newComponentWalk(p.routines).circles(p.routines, (*routine).observedCallee) {
		for _, r := range circle {
			r.circle = i + 1
		}
	}
}

// tailCircles finds the routines that tail jumps can lead back to themselves.
func (p *planner) tailCircles() []bool {
	in := make([]bool, len(p.routines))
	for _, circle := range newComponentWalk(p.routines).circles(p.routines, (*routine).jumpee) {
		for _, r := range circle {
			in[r.ID] = true
		}
	}
	return in
}

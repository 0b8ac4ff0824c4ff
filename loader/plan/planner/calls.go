package planner

import (
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// callTable says what a routine calls and jumps to, and who calls it. Where routines are left out,
// all but leads and destinations changes.
type callTable struct {
	leads        []int         // the blocks that call, or jump to another routine
	destinations []destination // of leads
	by           []calling     // by block
	callers      []*routine    // that the routine is Known to, each once
	callees      []*routine    // that it calls or jumps to and that are Known
	jumpees      []*routine    // of these, those that it jumps to
	circle       int           // the circle of calls and jumps that it is on, from 1; 0: none
	external     bool          // external code may run before it ends
	// it calls traced routines from where the size of its frame is not known
	dynamicFrame bool
}

// callee is what block b calls, or tail-jumps to; the routine if it is Known.
func (c *callTable) callee(b int) (plan.Callee, *routine) { return c.by[b].kind, c.by[b].to }

// known is the traced routine that block b calls or jumps to; nil if there is none.
func (c *callTable) known(b int) *routine { return c.by[b].to }

// isCall reports whether block b ends in a call instruction. It does not look at the block, which
// is far away in memory as a rule.
func (c *callTable) isCall(b int) bool { return c.by[b].call }

// returnsTwice reports whether the call that ends block b may return more than once, as setjmp
// does.
func (c *callTable) returnsTwice(b int) bool {
	i, leads := slices.BinarySearch(c.leads, b)
	return leads && c.destinations[i].twice
}

// A calling is what a block calls, or jumps to.
type calling struct {
	kind plan.Callee
	call bool     // by a call instruction
	to   *routine // nil unless Known
}

// A destination is where a block calls or jumps to, whatever of it is traced.
type destination struct {
	to        *routine    // of the program; nil if it is none, or not known
	otherwise plan.Callee // what it is if that is not traced
	call      bool        // by a call instruction
	twice     bool        // it may return more than once
}

// calling is what a block calls, now that it is known what is traced.
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
func (p *planner) findLeads(r *routine) {
	n := 0
	for b := range r.Blocks {
		if mayLead(&r.Blocks[b]) {
			n++
		}
	}
	r.calls.leads, r.calls.destinations = make([]int, 0, n), make([]destination, 0, n)
	for b := range r.Blocks {
		if mayLead(&r.Blocks[b]) {
			r.calls.leads, r.calls.destinations = append(r.calls.leads,
				b), append(r.calls.destinations, p.destination(r, b))
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

func (p *planner) destination(r *routine, b int) (d destination) {
	block := &r.Blocks[b]
	if block.End == cfg.TailInd {
		return destination{otherwise: plan.Unknown}
	}
	d.call = block.IsCall()
	callee, name := p.program.Callee(r.Routine, b)
	if callee != nil {
		d.to = p.routines[callee.ID]
	}
	d.twice = p.program.CallReturnsTwice(r.Routine, b)
	switch {
	case p.imports.IsHarmless(name) && block.End != cfg.NoReturn:
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

// classify finds for each routine who may enter it: ProbeFree and rootable.
func (p *planner) classify() {
	p.each(func(r *routine) bool {
		r.calls.callees, r.calls.jumpees = r.calls.callees[:0], r.calls.jumpees[:0]
		for i, b := range r.calls.leads {
			c := r.calls.destinations[i].calling()
			if r.calls.by[b] = c; c.kind == plan.Known {
				r.calls.callees = append(r.calls.callees, c.to)
				if !c.call {
					r.calls.jumpees = append(r.calls.jumpees, c.to)
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
		for _, t := range q.calls.callees {
			if !q.traced() && t != q {
				fromOutside[t.ID] = true
			}
		}
	}
	for i, r := range p.routines {
		r.standing.entered = fromOutside[i] || len(r.Others) > 0 ||
			p.program.AddressTaken(r.Addr) || r.Symbol == "main" || r.Symbol == "_init" ||
			r.Symbol == "_fini"
		r.standing.probeFree = !r.standing.entered && !inCircle[i] && !r.Faulty
	}
	for again := true; again; { // whoever is tail-jumped to returns to the jumper's caller
		again = false
		for _, q := range p.routines {
			if !q.standing.entered || !q.traced() {
				continue
			}
			for _, t := range q.calls.jumpees {
				if !t.standing.entered {
					t.standing.entered, again = true, true
				}
			}
		}
	}
}

// findReentries finds out which routines may be entered again before they end: those on circles,
// and those out of which external code runs.
func (p *planner) findReentries() {
	for _, r := range p.routines {
		r.calls.callers = r.calls.callers[:0]
	}
	var queue []*routine
	for _, r := range p.routines {
		r.calls.circle, r.calls.external, r.calls.dynamicFrame = 0, false, false
		for _, b := range r.calls.leads {
			kind, _ := r.calls.callee(b)
			r.calls.external = r.calls.external || kind == plan.External || kind == plan.Unknown
			r.calls.dynamicFrame = r.calls.dynamicFrame ||
				kind == plan.Known && r.calls.isCall(b) && r.Blocks[b].Depth < 0
		}
		if r.calls.external {
			queue = append(queue, r)
		}
		for _, t := range r.calls.callees {
			if n := len(t.calls.callers); n == 0 || t.calls.callers[n-1] != r {
				t.calls.callers = append(t.calls.callers, r)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, r := range queue[i].calls.callers {
			if !r.calls.external {
				r.calls.external = true
				queue = append(queue, r)
			}
		}
	}
	for i, circle := range newCallWalk(p.routines).circles(knownCallee) {
		for _, id := range circle {
			p.routines[id].calls.circle = i + 1
		}
	}
}

// tailCircles finds the routines that tail jumps can lead back to themselves.
func (p *planner) tailCircles() []bool {
	in := make([]bool, len(p.routines))
	for _, circle := range newCallWalk(p.routines).circles(knownJumpee) {
		for _, id := range circle {
			in[id] = true
		}
	}
	return in
}

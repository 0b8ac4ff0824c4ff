package loads

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// A continuation is where a call returns to.
type continuation struct {
	address    uint64        // link-time
	call, from place         // the block with the call, and the one behind it
	callee     *plan.Routine // nil: any
	// what programs for the code up to the next probe do, those behind further returns apart
	reads, returns bool
	picks          bool // what they read decides on more
	uses           x86.Set
}

// continuations are those of all calls that traced routines make and that may be of such.
func continuations(p *plan.Plan) (list []continuation) {
	for id, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		for b := range r.Blocks {
			block := &r.Blocks[b]
			if _, isKey := p.Calls[block.Hi]; !isKey || !block.CallReturns() {
				continue
			}
			if kind, callee := r.Callee(b); kind == plan.Known || kind == plan.Unknown {
				list = append(list, continuation{
					address: block.Hi, call: place{int32(id), int32(b)},
					from: place{int32(id), int32(block.Succ[0])}, callee: callee,
				})
			}
		}
	}
	return list
}

// A finder finds out for each routine whether programs go on behind its return, and what registers
// that takes: where any of those who call it loads anything then.
type finder struct {
	plan    *plan.Plan
	facts   []facts
	changed bool
}

// needs has a routine's programs go on behind its return, with these registers, and what they have
// stored, if more depends on that.
func (f *finder) needs(routine int, regs x86.Set, stores bool) {
	x := &f.facts[routine]
	regs, stores = regs|x.behind, stores || x.stores
	if regs != x.behind || stores != x.stores {
		x.behind, x.stores, f.changed = regs, stores, true
	}
}

// find looks at calls and at jumps to other routines until nothing changes any more.
func (f *finder) find(list []continuation) {
	// where a routine is called, or jumped to, of which nobody knows who it is
	var anybody x86.Set
	stores := false
	for f.changed = true; f.changed; {
		f.changed = false
		for i := range list {
			c := &list[i]
			regs, further, picks := c.uses, x86.Set(0), c.picks
			if c.returns {
				further = f.facts[c.from.routine].behind
				picks = picks || f.facts[c.from.routine].stores
			}
			if regs |= further; !c.reads && further == 0 {
				continue
			}
			regs |= 1 << x86.RSP
			if c.callee != nil {
				f.needs(c.callee.ID, regs, picks)
			} else if anybody|regs != anybody || picks && !stores {
				anybody, stores, f.changed = anybody|regs, stores || picks, true
			}
		}
		for id, r := range f.plan.Routines {
			if !r.Traced() {
				continue
			}
			if f.plan.Program.AddressTaken(r.Addr) {
				f.needs(id, anybody, stores)
			}
			if x := &f.facts[id]; x.behind != 0 && x.jumps && f.jumps(r, x.behind, x.stores) {
				anybody, stores = anybody|x.behind, stores || x.stores
			}
		}
	}
}

// jumps is for the routines that one jumps to: they return where it would. It reports whether it
// jumps to others, which may need these registers.
func (f *finder) jumps(r *plan.Routine, regs x86.Set, stores bool) (anybody bool) {
	for b := range r.Blocks {
		switch end := r.Blocks[b].End; {
		case end == cfg.TailInd:
			anybody = true
		case end == cfg.Tail || end == cfg.Jcc && r.Blocks[b].Succ[0] == cfg.Exit:
			if kind, callee := r.Callee(b); kind == plan.Known {
				f.needs(callee.ID, regs, stores)
			}
		}
	}
	return anybody
}

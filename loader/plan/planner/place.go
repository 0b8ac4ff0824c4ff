package planner

import (
	"cmp"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// A placing makes of a routine's probes what the plan says of them.
type placing struct {
	r        *routine
	leaving  blockSet                // see markLeaving
	counts   map[int]*absint.Counter // by block: loops without a probe whose rounds events decide
	captured map[int]*plan.Capture   // by block: the registers that its events record
	caller   uint64                  // see plan.Site
	onward   onward
}

// result makes the plan of the probes that are on.
func (p *planner) result() (*plan.Plan, error) {
	placed := make([]placing, len(p.routines))
	p.each(func(r *routine) bool {
		if r.standing.probeFree = r.standing.probeFree && r.traced(); r.traced() {
			placed[r.ID] = newPlacing(r)
		}
		return false
	})
	probeFree := make([]bool, len(p.routines))
	p.each(func(r *routine) bool {
		probeFree[r.ID] = r.traced() && r.runsProbeFree()
		return false
	})
	p.each(func(r *routine) bool {
		if x := &placed[r.ID]; r.traced() {
			x.caller, x.onward = onlyCaller(r), newOnward(r, probeFree)
		}
		return false
	})
	var calls map[uint64]plan.Call
	var sites []plan.Site
	parallel.Both(func() { calls = p.placeCalls(placed) },
		func() { sites = p.placeSites(placed) })
	found := make([]plan.Findings, len(p.routines))
	p.each(func(r *routine) bool { found[r.ID] = placed[r.ID].findings(r); return false })
	return plan.New(p.program, p.imports, found, sites, calls)
}

func newPlacing(r *routine) placing {
	x := placing{r: r}
	x.captureRegisters()
	r.markFirst()
	x.markLeaving()
	return x
}

// findings are what the plan says of a routine.
func (x *placing) findings(r *routine) plan.Findings {
	f := plan.Findings{
		LeftOut: r.leftOut, Cause: r.cause, ProbeFree: r.standing.probeFree,
		ExternalCallers: r.standing.entered, MayLeaveCallOpen: r.standing.open,
		Blocks: make([]plan.Block, len(r.Blocks)),
	}
	for b := range f.Blocks {
		to := &f.Blocks[b]
		if to.Callee = r.calls.by[b].kind; to.Callee == plan.Known {
			to.To = int32(r.calls.by[b].to.ID)
		}
		if r.costs.freq != nil {
			to.Runs = r.costs.activations * r.costs.freq[b]
		}
		if r.traced() {
			to.First, to.Asks = r.first[b], r.conditions[b]
		}
	}
	for b, c := range x.counts {
		f.Blocks[b].Counts = c
	}
	for i, b := range r.calls.leads {
		f.Blocks[b].ReturnsTwice = r.calls.destinations[i].twice
	}
	return f
}

// placeSites makes the sites, in the order of their addresses.
func (p *planner) placeSites(placed []placing) []plan.Site {
	type spot struct {
		addr    uint64
		routine *routine
		block   int
	}
	n := 0
	for _, r := range p.routines {
		n += r.countProbes()
	}
	spots := make([]spot, 0, n)
	for _, r := range p.routines {
		if !r.traced() {
			continue
		}
		for b, pr := range r.probed {
			if pr.on {
				spots = append(spots, spot{r.Blocks[b].Insns[pr.insn].Addr, r, b})
			}
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(a.addr, b.addr) })
	sites := make([]plan.Site, len(spots))
	parallel.Each(len(spots), func(i int) {
		sites[i] = placed[spots[i].routine.ID].site(spots[i].block)
	})
	return sites
}

// countLeads returns how many blocks lead to other routines, or may.
func (p *planner) countLeads() (n int) {
	for _, r := range p.routines {
		n += len(r.calls.leads)
	}
	return n
}

// countProbes returns how many blocks of the routine have a probe.
func (r *routine) countProbes() (n int) {
	for b := range r.probed {
		if r.probed[b].on {
			n++
		}
	}
	return n
}

// placeCalls makes the table of calls.
func (p *planner) placeCalls(placed []placing) map[uint64]plan.Call {
	calls := make(map[uint64]plan.Call, p.countLeads())
	for _, r := range p.routines {
		if !r.traced() {
			continue
		}
		for _, b := range r.calls.leads {
			if block := &r.Blocks[b]; r.calls.isCall(b) && block.Depth >= 0 {
				calls[block.Hi] = plan.Call{Depth: block.Depth, AfterEvent: r.callsAfterEvent(b),
					Caller: placed[r.ID].caller}
			}
		}
	}
	return calls
}

// site makes the site of block b.
func (x *placing) site(b int) plan.Site {
	r := x.r
	block, pr := &r.Blocks[b], r.probed[b]
	insn := block.Insns[pr.insn]
	rule := r.CFA(insn.Addr)
	s := plan.Site{Addr: insn.Addr, Routine: r.ID, Block: b, Insn: int(pr.insn),
		Condition: plan.NoCondition, Stepped: pr.stepped,
		Base: hardware(rule.Reg), Offset: rule.Off, Slot: rule.Reg == image.Slot, First: r.first[b],
		Caller: x.caller, Expected: r.costs.activations * r.costs.freq[b]}
	if insn.Kind == x86.Jcc {
		s.Condition = insn.Condition()
	}
	if insn.Kind == x86.Jcc && block.End == cfg.Jcc {
		s.SameActivation = [2]bool{!x.leaves(block.Succ[1]), !x.leaves(block.Succ[0])}
	} else if !r.calls.isCall(b) {
		s.SameActivation[0] = !x.leaves(r.Blocks[b].After()...)
	}
	if conditional := insn.Kind == x86.Jcc && block.End == cfg.Jcc; conditional {
		s.NextCall = [2]uint64{x.onward.after(b, block.Succ[1]), x.onward.after(b, block.Succ[0])}
	} else {
		s.NextCall[0] = x.onward.after(b, block.After()...)
	}
	switch t := pr.capture; {
	case t == nil:
		s.Capture = x.captured[b]
	case t.Kind == plan.JumpPlace:
		s.Capture = x.values(b, t.Operand)
	case r.switches.isKnown(t.Table): // no probe put in later parts the two
		s.Capture = t
	}
	return s
}

// hardware turns the register of a rule, by its DWARF number or that of a slot's rule, into the
// hardware's.
func hardware(reg int8) uint8 {
	if number, ok := arch.Native.FrameRegister(reg); ok {
		return number
	}
	return arch.Native.FramePointer() // of a slot
}

// markLeaving finds the blocks from which a call, or the end of the activation, can be reached
// without an event.
func (x *placing) markLeaving() {
	r := x.r
	x.leaving = make(blockSet, len(r.Blocks))
	for b := range x.leaving {
		x.leaving[b] = !r.probed[b].on && (r.calls.isCall(b) || x.leaves(r.Blocks[b].After()...))
	}
	x.leaving.extend(func(b int) []int {
		if r.probed[b].on {
			return nil
		}
		return r.Blocks[b].After()
	})
}

// leaves reports whether an activation that goes on at one of these nodes can call or end before an
// event. Where it can go nowhere, it ends.
func (x *placing) leaves(nodes ...int) bool {
	return len(nodes) == 0 || slices.ContainsFunc(nodes,
		func(n int) bool { return n == exit || x.leaving[n] })
}

// captureRegisters has the events capture what decides the rounds of loops. Loops between events
// that have come since, and that carry something else, get a probe.
func (x *placing) captureRegisters() {
	r := x.r
	search := &roundSearch{r, newSearch(r)}
	t, w := search.find()
	for ; w != nil && r.traced(); t, w = search.find() {
		r.probe(w.loop)
	}
	x.counts, x.captured, r.loops.effects = t.by, make(map[int]*plan.Capture, len(t.captures)), nil
	for b, list := range t.captures {
		x.captured[b] = &plan.Capture{Kind: plan.LoopRegisters, Table: none, Registers: list[0]}
	}
}

// values is what the captured value of block b decides, nil if that is nothing.
func (x *placing) values(b int, place x86.Operand) *plan.Capture {
	decided := newSearch(x.r).stretch(b, place).decided
	if len(decided) == 0 || len(decided) > mostDecided {
		return nil
	}
	slices.Sort(decided)
	return &plan.Capture{Kind: plan.JumpPlace, Table: none, Operand: place, Jumps: decided}
}

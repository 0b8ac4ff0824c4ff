package route

import (
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// A freeRun is what a routine does when it has no event.
type freeRun struct {
	emissions []Emission
	working   bool
	none      bool
}

// FreeRun returns the operations of the routine's one run without an event; ok is false if each run
// has events.
func (r *Routine) FreeRun() (emissions []Emission, ok bool) {
	if !r.runsFree() {
		return nil, false
	}
	return r.run.emissions, true
}

func (r *Routine) freeRun() []Emission {
	emissions, _ := r.FreeRun()
	return emissions
}

func (r *Routine) runsFree() bool {
	if r.run == nil {
		r.run = &freeRun{working: true}
		r.run.fill(r)
		r.run.working = false
	}
	return !r.run.none && !r.run.working // plans have no circles without an event
}

// mostEmissions bounds what a routine may do without an event: routines without events that call
// each other twice would double it at each level.
const mostEmissions = 1 << 16

func (q *freeRun) fill(r *Routine) {
	q.none = true
	if !r.Plan.ProbeFree {
		return
	}
	o, n := r.AtEntry().ReturnsBy(false)
	if n != 1 {
		return
	}
	run, ok := o.Transition.fixed()
	if !ok {
		return
	}
	q.emissions = append([]Emission{{Kind: EmitEnter, Routine: r}}, run...)
	if t := r.TailTarget(o.Block); t != nil {
		q.emissions = append(q.emissions, t.freeRun()...)
	}
	q.none = len(q.emissions) > mostEmissions
	if q.none {
		q.emissions = nil
	}
}

// callsFreely reports whether control can pass block b, which has no probe, without an event of the
// code that it calls.
func (r *Routine) callsFreely(b int) bool {
	return r.Kinds[b] != plan.Known || r.Callees[b].runsFree()
}

// TailTarget is the traced routine that block b jumps to as it leaves; nil if it is not known.
func (r *Routine) TailTarget(b int) *Routine {
	if r.Kinds[b] == plan.Known && !r.Blocks[b].IsCall() {
		return r.Callees[b]
	}
	return nil
}

// CallsExternal reports whether block b calls, or jumps to, external code, or code that is not
// known: either may call back.
func (r *Routine) CallsExternal(b int) bool {
	return r.Kinds[b] == plan.External || r.Kinds[b] == plan.Unknown
}

// JumpsOutside reports whether the routine leaves at block b by a jump to external code, or code
// that is not known: which may jump on to any routine.
func (r *Routine) JumpsOutside(b int) bool {
	e := r.Blocks[b].End
	return (e == cfg.TailInd || e == cfg.Tail || e == cfg.Jcc) && r.CallsExternal(b)
}

// LeavesTraced reports whether block b jumps to external code, be it code that calls nothing back.
func (r *Routine) LeavesTraced(b int) bool {
	return r.JumpsOutside(b) || r.Kinds[b] == plan.Harmless && !r.Blocks[b].IsCall()
}

// LeadsOutside reports whether the routine leaves at block b by a jump to external code, or through
// routines without events that do.
func (r *Routine) LeadsOutside(b int) bool {
	for range mostRelays {
		if r.JumpsOutside(b) {
			return true
		}
		if r = r.TailTarget(b); r == nil {
			return false
		}
		o, n := r.AtEntry().ReturnsBy(false)
		if n == 0 {
			return false
		}
		b = o.Block
	}
	return false
}

// mostRelays bounds how many routines without events may hand control on by tail jumps: no plan has
// more.
const mostRelays = plan.MaxProbeFreeJumps

// Relay lists the operations of the routines without events, from this one on, that jump to goal;
// ok is false if they do not lead there.
func (r *Routine) Relay(goal *Routine) (emissions []Emission, ok bool) { return r.relay(goal, 0) }

func (r *Routine) relay(goal *Routine, depth int) (emissions []Emission, ok bool) {
	if r == goal {
		return nil, true
	}
	if depth == mostRelays || !r.Plan.ProbeFree {
		return nil, false
	}
	for _, o := range r.AtEntry().Outs(false) {
		next := r.TailTarget(o.Block)
		if next == nil && !r.JumpsOutside(o.Block) {
			continue
		}
		var rest []Emission
		if next != nil {
			if rest, ok = next.relay(goal, depth+1); !ok {
				continue
			}
		}
		run, ok := o.Transition.fixed()
		if !ok {
			continue
		}
		emissions = append([]Emission{{Kind: EmitEnter, Routine: r}}, run...)
		return append(emissions, rest...), true
	}
	return nil, false
}

// MayJumpOnTo reports whether tail jumps can lead from the routine to goal.
func (r *Routine) MayJumpOnTo(goal *Routine) bool {
	list, seen := []*Routine{r}, map[*Routine]bool{}
	for i := 0; i < len(list); i++ {
		for b := range list[i].Blocks {
			next := list[i].TailTarget(b)
			if next == goal || list[i].JumpsOutside(b) {
				return true
			}
			if next != nil && !seen[next] {
				seen[next] = true
				list = append(list, next)
			}
		}
	}
	return false
}

// LandsAt reports whether control may come out of the call that ends block b to block to otherwise
// than by its return: it throws, or returns once more from an earlier call.
func (r *Routine) LandsAt(b, to int) bool {
	block := &r.Blocks[b]
	again := r.Again[to] && block.IsCall() && !slices.Contains(block.Succ, to)
	return slices.Contains(block.Pads, to) || again
}

// MayThrow reports whether the call of block b enters external code, which may come to block to
// otherwise than by its return.
func (r *Routine) MayThrow(b, to int) bool { return r.CallsExternal(b) && r.LandsAt(b, to) }

// ComesByLanding reports whether the call of block b may throw, or return a second time, to where a
// probe-free route leads to a block from.
func (r *Routine) ComesByLanding(b, block int) bool {
	if !r.Blocks[b].IsCall() || r.Kinds[b] == plan.Harmless {
		return false
	}
	for to := range r.Blocks {
		if !r.Pads[to] && !r.Again[to] || !r.LandsAt(b, to) {
			continue
		}
		if to == block || r.Site(to) == nil && r.At(to, 0).To(block, false) != nil {
			return true
		}
	}
	return false
}

// EndsPath reports whether every path that comes to the end of block b ends there.
func (r *Routine) EndsPath(b int) bool {
	switch r.Blocks[b].End {
	case cfg.Fall, cfg.Jmp, cfg.Jcc, cfg.Table:
		return false
	}
	return true
}

// EndAfter is how a path ends whose last block is b.
func (r *Routine) EndAfter(b int) ops.End {
	switch r.Blocks[b].End {
	case cfg.Call, cfg.CallInd:
		return ops.EndCall
	case cfg.Ret:
		return ops.EndReturn
	case cfg.Tail, cfg.TailInd:
		return ops.EndTail
	case cfg.NoReturn, cfg.Trap:
		return ops.EndNoReturn
	}
	return ops.EndLoop
}

package verify

import (
	"fmt"

	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// checkSites: each probe sits on an instruction of the allow-lists, where the frame's address is
// known, and its event says what the plan has it say.
func (v *verifier) checkSites(r *routine) {
	for b, s := range r.sites {
		if s == nil {
			continue
		}
		q := r.Blocks[b].Insns[s.Insn]
		code := v.plan.Program.Image.Bytes(q.Addr, q.Addr+uint64(q.Len))
		class, rule := q.Class(code), r.CFA(q.Addr)
		what := ""
		switch {
		case q.Addr != s.Addr:
			what = fmt.Sprintf("sits on no instruction, the nearest is at %x", q.Addr)
		case class == x86.Never:
			what = "sits on an instruction that must not carry one"
		case s.Stepped != (class == x86.Stepped):
			what = fmt.Sprintf("is taken to be single-stepped: %v", s.Stepped)
		case !sameFrame(s, rule):
			what = fmt.Sprintf("looks for the frame address at %d%+d, slot %v, and the rule "+
				"there is %+v", s.Base, s.Offset, s.Slot, rule)
		case (q.Kind == x86.Jcc) != (s.Condition < plan.NoCondition) ||
			q.Kind == x86.Jcc && s.Condition != q.Condition():
			what = fmt.Sprintf("asks for condition %d", s.Condition)
		case s.First != r.first[b]:
			what = fmt.Sprintf("is taken for a possible first event: %v", s.First)
		case s.Capture != nil && !v.captures(r, s):
			what = "captures nothing that decides its switch"
		default:
			continue
		}
		r.fault(fmt.Sprintf("the probe at %x %s", s.Addr, what))
		return
	}
}

// checkSameActivation: where an event is taken to be followed by another of its activation, nothing
// calls or ends the activation before that.
func (v *verifier) checkSameActivation(r *routine) {
	parts := func(n int) bool {
		return n == cfg.Exit ||
			r.sites[n] == nil && (r.Blocks[n].IsCall() || len(r.Blocks[n].After()) == 0)
	}
	for b, s := range r.sites {
		if s == nil {
			continue
		}
		block := &r.Blocks[b]
		for outcome, stays := range s.SameActivation {
			if !stays {
				continue
			}
			next := r.Blocks[b].After()
			if s.Condition < plan.NoCondition && block.End == cfg.Jcc {
				next = block.Succ[1-outcome : 2-outcome]
			}
			if way := r.walker.probeFreeRoute(next, parts); way != nil || block.IsCall() ||
				len(next) == 0 {
				r.fault("an event is taken to be followed by another of its activation",
					append(r.way(b), way...))
				return
			}
		}
	}
}

// sameFrame reports whether a site finds the frame's address by the rule of the unwind information:
// the stack or
// frame pointer and an offset, or what lies at the latter and an offset.
func sameFrame(s *plan.Site, rule image.CFA) bool {
	if s.Offset != rule.Off {
		return false
	}
	if rule.Reg == image.Slot {
		return s.Slot && s.Base == arch.Native.FramePointer()
	}
	number, ok := arch.Native.FrameRegister(rule.Reg)
	return ok && s.Base == number && !s.Slot
}

// captures reports whether a site that decides a switch reads the index at the bounds check, or the
// target at the jump.
func (v *verifier) captures(r *routine, s *plan.Site) bool {
	c := s.Capture
	switch c.Kind {
	case plan.LoopRegisters: // see checkRounds
		return true
	case plan.JumpPlace:
		return s.Condition < plan.NoCondition && s.Insn == len(r.Blocks[s.Block].Insns)-1 &&
			r.HasPlace(c.Operand, s.Addr)
	}
	if c.Table < 0 || c.Table >= len(r.Blocks) || r.Blocks[c.Table].End != cfg.Table ||
		s.Insn != len(r.Blocks[s.Block].Insns)-1 {
		return false
	}
	if c.Kind == plan.SwitchTarget {
		q := r.Blocks[s.Block].Insns[s.Insn]
		_, operand, _ := q.Operands(v.plan.Program.Image.Bytes(q.Addr, q.Addr+uint64(q.Len)),
			q.Addr+uint64(q.Len))
		operand.Size = 8
		return s.Block == c.Table && c.Operand == operand
	}
	t := r.Blocks[c.Table].Table
	return c.Kind == plan.SwitchIndex && t != nil && len(t.Targets) > 0 && s.Block == t.Check &&
		s.Condition < plan.NoCondition && c.Operand == t.Index && c.Bias == t.Bias
}

// checkWitnesses: what no other event can stand for makes an event itself (rules 1 and 5).
func (v *verifier) checkWitnesses(r *routine) {
	demand := func(b int, what string) {
		if r.sites[b] == nil {
			r.fault(what+" has no probe", r.way(b))
		}
	}
	for _, b := range r.Pads {
		demand(b, "a landing pad")
	}
	for _, b := range r.Others {
		demand(b, "a second entry")
		demand(r.Entry, "an entry of several")
	}
	for b := range r.Blocks {
		for _, pad := range r.Blocks[b].Pads {
			demand(pad, "a landing pad")
		}
		if r.kinds[b] == plan.External {
			demand(b, "what enters external code")
		}
		if r.ReturnsTwice(b) {
			demand(b, "a call that may return twice")
			demand(r.Blocks[b].Succ[0], "what follows a call that may return twice")
		}
	}
}

// checkCalls: a chain of callers is followed through frames of known size, and ends only where the
// caller has made an event for certain (rules 2 and 4).
func (v *verifier) checkCalls(r *routine) {
	for b := range r.Blocks {
		block := &r.Blocks[b]
		if !block.IsCall() {
			continue
		}
		unprobed := r.first[b] && r.sites[b] == nil
		c, ok := v.plan.Calls[block.Hi]
		switch {
		case block.Depth < 0 && unprobed && r.kinds[b] == plan.Known:
			r.fault("a call may come before an event, from a frame of unknown size",
				r.walker.probeFreeRoute(r.entries, func(n int) bool { return n == b }))
		case ok != (block.Depth >= 0):
			r.fault(fmt.Sprintf("the call before %x is in the table of calls: %v; its frame is "+
				"%d bytes", block.Hi, ok, block.Depth))
		case ok && c.Depth != block.Depth:
			r.fault(fmt.Sprintf("the frame at the call before %x is %d bytes, not %d", block.Hi,
				block.Depth, c.Depth))
		case ok && c.AfterEvent && unprobed:
			r.fault(fmt.Sprintf("the call before %x may come before an event, and callers are "+
				"followed no further", block.Hi),
				r.walker.probeFreeRoute(r.entries, func(n int) bool { return n == b }))
		case ok && !c.AfterEvent && !unprobed:
			r.fault(fmt.Sprintf("the call before %x comes after an event, and is taken not to",
				block.Hi))
		default:
			continue
		}
		return
	}
}

// checkShifting: where a frame's size is not known, whose call a chain of callers ends at is known
// by an event after the last call that another activation of the routine may have come out of (rule
// 4).
func (v *verifier) checkShifting(r *routine) {
	is := func(n int) bool {
		return n != cfg.Exit && r.sites[n] == nil && r.kinds[n] == plan.Known &&
			r.Blocks[n].IsCall() && r.Blocks[n].Depth < 0
	}
	bad := r.backwards(is)
	for b := range r.Blocks {
		block := &r.Blocks[b]
		if block.CallReturns() && *bad.at(block.Succ[0]) && v.mayEnterAgain(r, b) {
			r.fault("a call from a frame of unknown size may be that of another activation",
				append(r.way(b), r.walker.probeFreeRoute(block.Succ[:1], is)...))
			return
		}
	}
}

// mayEnterAgain reports whether what block b enters may lead to the routine, perhaps through code
// that is not traced.
func (v *verifier) mayEnterAgain(r *routine, b int) bool {
	if r.enters(b) {
		return true
	}
	list, seen := []*routine{r.callees[b]}, map[*routine]bool{nil: true}
	for ; len(list) > 0; list = list[1:] {
		q := list[0]
		if q == nil || seen[q] {
			continue
		}
		seen[q] = true
		for c := range q.Blocks {
			if q.enters(c) || q.callees[c] == r {
				return true
			}
		}
		list = append(list, q.callees...)
	}
	return r.callees[b] == r
}

// checkTable: the table of calls has those of traced routines alone.
func (v *verifier) checkTable() {
	known := 0
	for _, r := range v.traced {
		for b := range r.Blocks {
			if _, ok := v.plan.Calls[r.Blocks[b].Hi]; ok && r.Blocks[b].IsCall() {
				known++
			}
		}
	}
	if extra := len(v.plan.Calls) - known; extra != 0 {
		v.faults = append(v.faults, Fault{What: fmt.Sprintf("%d entries of the table of calls "+
			"are of no call", extra)})
	}
}

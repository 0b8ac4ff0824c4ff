package verify

import (
	"fmt"
	"slices"

	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

// checkRounds: the rounds of a loop without a probe are a function of what the last event before it
// captures, and of what the next event behind it does, unless they are known before the loop begins
// (rule 13: counted loops).
func (v *verifier) checkRounds(r *routine) {
	counts := false
	for b := range r.Blocks {
		c := r.Counts(b)
		counts = counts || c != nil
		switch {
		case c == nil:
			continue
		case r.sites[b] != nil:
			r.fault("a loop has a probe, and other events decide its rounds", r.way(b))
		case !slices.Contains(r.Counters(b), *c):
			r.fault("the register that is to decide the rounds of a loop does not count them", r.way(b))
		case !c.Exact:
			rounds{r}.checkBehind(b, c)
		}
	}
	if counts {
		r.eachStart(rounds{r}.checkBefore)
	}
	for b, s := range r.sites {
		if s == nil || s.Capture == nil || s.Capture.Kind != plan.LoopRegisters {
			continue
		}
		stackPointer := int8(arch.Native.StackPointer())
		if x := s.Capture.Registers; s.Stepped || x.Reg == stackPointer ||
			x.Minus == stackPointer ||
			x.Part != absint.Whole && x.Minus != plan.NoRegister {
			r.fault("a captured value is one that its site cannot record", r.way(b))
			return
		}
	}
}

// loopsOnce are the nodes after a block. A loop whose rounds are captured does not follow itself.
func (r *routine) loopsOnce(n int) []int {
	next := r.onwards(n)
	if r.Counts(n) == nil {
		return next
	}
	return slices.DeleteFunc(slices.Clone(next), func(to int) bool { return to == n })
}

// rounds are those of the loops of a routine that have no probe.
type rounds struct{ r *routine }

// through is what registers hold behind block n.
func (o rounds) through(regs absint.Registers, n int) absint.Registers {
	r := o.r
	if r.Counts(n) != nil {
		r.FollowRounds(&regs, n)
	} else {
		r.Follow(&regs, n, 0, len(r.Blocks[n].Insns))
	}
	return regs
}

// routeAfter are the nodes of the same activation that a probe-free route may go on to, after some
// start.
func (o rounds) routeAfter(s *start, n int) []int {
	r := o.r
	switch {
	case n == cfg.Exit, r.sites[n] != nil:
		return nil
	case n == s.table:
		return []int{s.target}
	}
	return r.loopsOnce(n)
}

// inOrder lists a start's nodes and all that a probe-free route leads to from them, each behind
// those that lead to it.
func (o rounds) inOrder(s *start) (order []int) {
	r := o.r
	seen := newByNode[bool](r)
	var visit func(n int)
	visit = func(n int) {
		if *seen.at(n) {
			return
		}
		*seen.at(n) = true
		for _, to := range o.routeAfter(s, n) {
			visit(to)
		}
		order = append(order, n)
	}
	for _, n := range s.nodes {
		visit(n)
	}
	slices.Reverse(order)
	return order
}

// flow calls yield, until it returns false, with each node that a probe-free route leads to from a
// start, and what registers hold there, if they hold regs at its nodes; nil, where several ways
// lead to it: what can be said of all of them may be more than can be followed on one.
func (o rounds) flow(s *start, regs absint.Registers,
	yield func(n int, regs *absint.Registers) bool) {
	r := o.r
	held, come := newByNode[*absint.Registers](r), newByNode[bool](r)
	for _, n := range s.nodes {
		*held.at(n), *come.at(n) = &regs, true
	}
	for _, n := range o.inOrder(s) {
		if !*come.at(n) {
			continue // it is on a circle without an event, which is found elsewhere
		}
		if !yield(n, *held.at(n)) {
			return
		}
		next := o.routeAfter(s, n)
		var behind *absint.Registers
		if len(next) > 0 && *held.at(n) != nil {
			regs := o.through(**held.at(n), n)
			behind = &regs
		}
		for _, to := range next {
			if *come.at(to) {
				*held.at(to) = nil
			} else {
				*held.at(to), *come.at(to) = behind, true
			}
		}
	}
}

// checkBefore: where a probe-free route leads from a start to a loop, the counter's beginning is
// known, or the start's captured value decides it.
func (o rounds) checkBefore(s start) {
	r := o.r
	regs := absint.Unchanged()
	if s.event != none {
		r.Follow(&regs, s.event, r.sites[s.event].Insn, len(r.Blocks[s.event].Insns))
	}
	for _, nodes := range s.outcomes(r) {
		s.nodes = nodes
		o.flow(&s, regs, func(n int, regs *absint.Registers) bool {
			if n == cfg.Exit {
				return true
			}
			c := r.Counts(n)
			ok := c == nil || regs != nil && o.isKnown(s, c, *regs)
			if !ok {
				r.fault("no captured value decides what the counter of a loop begins with", r.way(max(s.event, 0), n))
			}
			return ok
		})
	}
}

// isKnown reports whether a counter's beginning is known there: it is a constant, or the start's
// captured value decides it.
func (o rounds) isKnown(s start, c *absint.Counter, regs absint.Registers) bool {
	r := o.r
	begins, ok := c.Beginning(&regs)
	if !ok || begins.IsConstant() {
		return ok
	}
	if s.event == none {
		return false
	}
	x := registersOf(r.sites[s.event])
	if x == nil {
		return false
	}
	captured := absint.Held(x.Reg)
	switch {
	case x.Part == absint.ZeroExtended:
		captured = captured.ZeroExtended()
	case x.Part == absint.SignExtended:
		captured = captured.SignExtended()
	case x.Minus != plan.NoRegister:
		captured, _ = absint.Distance(captured, absint.Held(x.Minus), 64)
	}
	rest, ok := absint.Distance(begins, scaled(captured, begins.Terms[0].Times), c.Width)
	return ok && rest.IsConstant()
}

// registersOf are those that a site records, nil if it records none.
func registersOf(s *plan.Site) *plan.Registers {
	if c := s.Capture; c != nil && c.Kind == plan.LoopRegisters {
		return &c.Registers
	}
	return nil
}

func scaled(l absint.Linear, times int64) absint.Linear {
	for i := range l.Terms[:l.N] {
		l.Terms[i].Times *= times
	}
	l.Add *= times
	return l
}

// checkBehind: on each way out of a loop an event captures the counter, before anything is called
// and before the activation ends, or another loop changes it.
func (o rounds) checkBehind(loop int, c *absint.Counter) {
	r := o.r
	o.flow(&start{nodes: r.loopsOnce(loop), table: none}, absint.Unchanged(),
		func(n int, regs *absint.Registers) bool {
			switch {
			case n == cfg.Exit, r.sites[n] == nil &&
				(r.Blocks[n].IsCall() || len(r.Blocks[n].After()) == 0):
				r.fault("no captured value decides what the counter of a loop ends with", r.way(loop, n))
				return false
			case r.sites[n] == nil:
				return true
			}
			s := r.sites[n]
			x := registersOf(s)
			ok := regs != nil && x != nil && x.Minus == plan.NoRegister && x.Part == absint.Whole
			if ok {
				left := *regs
				r.Follow(&left, n, 0, s.Insn)
				ok = isFrom(left.At(x.Reg), c)
			}
			if !ok {
				r.fault(fmt.Sprintf("the captured value at %x does not decide what the counter of a loop ends with", s.Addr),
					r.way(loop, n))
			}
			return ok
		})
}

// isFrom reports whether a value is that of a counter, as the loop left it, and a constant.
func isFrom(v absint.Linear, c *absint.Counter) bool {
	d, ok := absint.Distance(v, absint.Held(c.Reg), c.Width)
	return ok && d.IsConstant()
}

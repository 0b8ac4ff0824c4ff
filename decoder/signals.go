package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// A signals brings a thread to where a signal has interrupted it, and begins signal handlers.
type signals struct {
	d        *Decoder
	stack    *stack
	out      *emitter
	calls    *calls
	evidence *evidence

	// pending is where a handler of external code has come since the last event, if one has;
	// nothing is known of it but that.
	pending *location
	// faultSP is the stack pointer of external code where that has faulted since the last event,
	// the last time; faults is how often it has.
	faultSP uint64
	faults  int
}

// noteInterrupt notes that a signal's handler comes at an instruction of an image. Of one in
// external code, or where a handler begins, nothing follows for the one before.
func (g *signals) noteInterrupt(e wire.Event) {
	at := location{pc: e.Address(), regs: g.evidence.allRegisters(), faulted: e.Faulted()}
	at.hit = at.faulted
	if g.d.program.Traces(at.pc) && !g.d.beginsHandler(at) {
		g.pending = &at
	}
}

// noteFault notes that an instruction of external code has faulted.
func (g *signals) noteFault(e wire.Event) {
	g.faultSP = e.Address()
	g.faults++
}

// forgetFaults begins anew behind an event.
func (g *signals) forgetFaults() { g.faultSP, g.faults = 0, 0 }

// A reached says what is known of where a thread was interrupted: how many ways lead there, and
// which frames had not ended before.
type reached struct {
	n count
	interruption
}

// goTo brings the thread to where it was interrupted: a signal handler comes in between, or the
// thread is dead. Activations that must have returned before are ended, and routines that have had
// no event yet are entered. If there are several ways, only what they share moves: activations that
// have returned are ended, and the last path of one that has jumped away.
func (g *signals) goTo(to location) reached {
	found := g.search(to).run()
	i := found.frame
	switch found.ways.n {
	case none:
		return reached{}
	case one:
		here := g.out.here
		g.out.here = route.RegisterState{All: to.regs}
		g.follow(i, found.ways.way)
		g.out.here = here
		n := int32(len(g.stack.frames))
		return reached{one, interruption{most: n, least: n}}
	}
	g.calls.returnAbove(len(g.stack.frames) - 1 - found.returned)
	if found.jumped {
		g.out.jumpOut(g.stack.top())
	}
	most := int32(i + 1)
	if found.ways.ends {
		return reached{several, interruption{most: most, least: most - 1}}
	}
	return reached{several, interruption{most: most, least: most}}
}

// search returns the search for the ways from where the thread stands to a location.
func (g *signals) search(to location) *search {
	faults, there := g.faults, false
	if sp, ok := to.stackPointer(); ok && faults > 0 {
		there = to.returns != 0 && sp == g.faultSP
		returned := to.returns == 0 && sp == g.faultSP+8 // by what the handler has made of them
		if there || returned {
			faults--
		}
	}
	return &search{
		d: g.d, stack: g.stack, to: to, cfa: g.d.cfaAt(to), entries: map[entered]ways{},
		// Else it is the location itself.
		sawHandler:     g.pending != nil && (to.outside || to.pc != g.pending.pc),
		faultedThere:   there,
		faultedOutside: faults > 0,
	}
}

// follow lets frame i walk its way to where it was interrupted.
func (g *signals) follow(i int, way []step) {
	for _, h := range way {
		switch h.kind {
		case stepReturn:
			g.calls.returnAbove(i - 1)
		case stepStay:
			g.calls.returnAbove(i)
			g.out.makeCall(&g.stack.frames[i])
		case stepStop:
			g.calls.returnAbove(i)
			g.out.stopAt(&g.stack.frames[i], &h)
		case stepBack, stepBegin:
			if h.kind == stepBegin {
				g.out.sink.Mark(ops.Cut, 0) // what a handler has interrupted
			}
			g.calls.enterBy(&frame{activation: h.back, fromExternal: true, inferred: true},
				g.callerOf(h.back))
		case stepCall:
			g.calls.returnAbove(i)
			g.call(&g.stack.frames[i], h.block)
		case stepTail:
			g.calls.returnAbove(i)
			g.jump(i, h.out)
		}
		i = len(g.stack.frames) - 1
	}
}

// callerOf is what has called an activation that begins at the call where the thread stands. Where
// that call has put its return address, it stays until what it has called is over: there what
// begins returns behind the call.
func (g *signals) callerOf(a activation) ops.Caller {
	if len(g.stack.frames) > 0 {
		if cfa := g.stack.top().calleeCFA(); cfa != 0 && cfa == a.cfa {
			return ops.Traced
		}
	}
	return ops.External
}

// call lets an activation come to the call of block b, and enters what that calls, if it is traced.
func (g *signals) call(f *frame, b int) {
	g.out.goToCall(f, b)
	if f.r.Kinds[b] == plan.Known {
		to := activation{f.r.Callees[b], f.cfa - uint64(f.r.Blocks[b].Depth)}
		g.calls.enter(&frame{activation: to, caller: wire.MakeCaller(wire.Inside, f.r.ReturnTo(b))})
	}
}

// jump lets frame i, the innermost, leave by a tail jump.
func (g *signals) jump(i int, out route.Out) {
	f := g.stack.frames[i]
	g.out.apply(&f, out.Transition)
	g.stack.frames = g.stack.frames[:i]
	to := f.r.TailTarget(out.Block)
	switch {
	case to == nil && !f.fromExternal && i > 0:
		g.stack.top().inExternal = g.stack.top().called && f.r.JumpsOutside(out.Block)
	case to != nil:
		next := f.jumpedTo(activation{to, f.cfa}, f.caller)
		next.inferred = f.inferred
		g.calls.enterBy(next, ops.Traced)
	}
}

// leaveByHandler drops the frames above i, where a handler of external code has come since the last
// event: it has jumped, or thrown, out of what it interrupted. What ran up to there is emitted, if
// one way without an event leads there that does not end frame i; else `#cut` marks the place. It
// reports false if none has come.
func (g *signals) leaveByHandler(i int) bool {
	if g.pending == nil {
		return false
	}
	n := none
	found := g.search(*g.pending).run()
	stays := !found.ways.ends && len(g.stack.frames)-1-found.returned >= i
	if found.frame > i || found.frame == i && stays {
		n = g.goTo(*g.pending).n
	}
	if n != one && !g.out.cutPath(g.stack.top()) {
		g.out.sink.Mark(ops.Cut, 0)
	}
	if len(g.stack.frames)-1 > i {
		g.calls.dropFrom(i + 1)
	}
	return true
}

// markLeft marks that what ran before an event is missing: up to where a handler of external code
// has come, in what had had no event yet, which it has left for one of the callers of that, the
// event's.
func (g *signals) markLeft(a activation) {
	r := g.d.routineAt(*g.pending)
	sp, known := g.pending.stackPointer()
	switch {
	case r == nil, !r.Plan.Traced(), r.Plan.ProbeFree, r == a.r:
		return
	case !known, sp >= a.cfa, a.cfa-sp > near, g.stack.find(a, nil) < 0:
		return
	case slices.ContainsFunc(g.stack.frames, func(f frame) bool { return f.r == r }):
		return
	}
	if f := g.stack.top(); f.atExternalCall() {
		g.out.makeCall(f)
	}
	g.out.sink.Mark(ops.Cut, 0)
}

// runsAgain reports whether an event is that of an instruction which runs anew: it was hit, and
// faulted, and a handler of external code has mended what it faulted for.
func (g *signals) runsAgain(a activation, s *plan.Site) bool {
	if len(g.stack.frames) == 0 || g.pending.pc != s.Addr+a.r.Plan.Offset() {
		return false
	}
	f := g.stack.top()
	if f.activation != a || f.pos.Block != s.Block || f.called {
		return false
	}
	return g.pending.faulted || s.Stepped && f.pos.To(s.Block, false) == nil
}

// handle begins a signal handler. Where several ways lead to what it interrupts, or none, nothing
// moves but what is certain: the handler is placed behind the last event then.
func (g *signals) handle(f *frame) {
	earlier, ended := g.calls.endEarlierHandlers(f)
	if ended && f.caller.Origin() == wire.Handler && g.d.beginsHandler(g.returnOf(f)) {
		// Three handlers came at once: f seems to have interrupted the first, which has not run
		// yet, and so has interrupted what the earlier one has.
		f.interrupted = earlier.interrupted
		g.out.sink.Mark(ops.Handler, 0)
		g.calls.enter(f)
		return
	}
	to := g.interruptedBy(f)
	var found reached
	if !to.isAnywhere() {
		found = g.goTo(to)
	}
	// Else it only seems to return there.
	astray := found.n == none && to.returns != 0 && (g.pending != nil || g.mayBeCalled(to))
	if found.n == none && to.outside {
		to = location{outside: true}
		if g.pending != nil { // in the handler that has come there, or behind it
			to, astray = *g.pending, true
		}
		found = g.goTo(to)
	}
	if found.n != one {
		g.calls.endHandlerAt(f.cfa)
		atCall := len(g.stack.frames) == 0 || g.stack.top().atExternalCall()
		f.interrupted.unknown = !to.outside || to.returns != 0 || !g.stack.hasRun || !atCall
		if len(g.stack.frames) > 0 {
			g.out.pausePath(g.stack.top())
		}
	}
	if astray {
		f.interrupted.unknown, found.least = true, 0
	}
	n := int32(len(g.stack.frames))
	f.interrupted.most, f.interrupted.least = min(found.most, n), min(found.least, n)
	g.out.sink.Mark(ops.Handler, 0)
	g.calls.enter(f)
}

// mayBeCalled reports whether a location to which no way without an event is known may be where the
// thread is all the same: its return address is not a stale one, external code may have called back
// what leads there, or come back to an activation that stands further out, or on another stack.
func (g *signals) mayBeCalled(to location) bool {
	s := g.search(to)
	if s.faultedThere || g.stack.knownUpTo != 0 || len(g.stack.frames) > mostEntered ||
		len(s.origins()) > 0 {
		return true
	}
	leads := func(f frame) bool { return s.within(&f, true).n > none }
	anyLeads := func(piece []frame) bool { return slices.ContainsFunc(piece, leads) }
	return anyLeads(g.stack.frames) || slices.ContainsFunc(g.stack.away, anyLeads)
}

// interruptedBy is where the thread was when a handler came.
func (g *signals) interruptedBy(handler *frame) location {
	switch caller := handler.caller; {
	case caller.Origin() == wire.ReturnsToImage && len(g.evidence.registers) > 0:
		return location{outside: true, returns: caller.Address(), regs: g.evidence.allRegisters()}
	case caller.Origin() == wire.Handler && g.d.program.Traces(caller.Address()):
		return g.interruptedFirst(g.returnOf(handler))
	}
	return location{outside: true}
}

// returnOf is the instruction of an image before which a handler came, by its return address.
func (g *signals) returnOf(handler *frame) location {
	pc := handler.caller.Address()
	faulted := g.hasFaulted(pc)
	return location{pc: pc, regs: g.evidence.allRegisters(), faulted: faulted, hit: faulted}
}

// interruptedFirst is what a handler has interrupted that comes at a location: if another handler
// begins there, what both have.
func (g *signals) interruptedFirst(at location) location {
	switch {
	case !g.d.beginsHandler(at):
		return at
	case g.pending != nil:
		return *g.pending
	}
	return location{outside: true}
}

// hasFaulted reports whether the handler that came last came for a fault of the instruction at pc.
func (g *signals) hasFaulted(pc uint64) bool {
	return g.pending != nil && g.pending.faulted && g.pending.pc == pc
}

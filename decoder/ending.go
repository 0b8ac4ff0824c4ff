package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
)

// end takes a thread's end. If it ended in external code, what led there without an event has run:
// up to the first call of such code, or a return to it, or to where a handler came that it ended
// in.
func (g *signals) end(e wire.Event) {
	at, known, late := g.endOf(e)
	leftOut := known && !at.outside && !g.d.program.Traces(at.pc)
	killed := e.Origin() == wire.Killed || e.Origin() == wire.ReturnsToImage || leftOut
	since := g.pending != nil && g.stack.hasRun &&
		(e.Origin() == wire.Inside && !leftOut || killed && !g.inUnseenHandler())
	if since {
		g.endSince(*g.pending, e.Origin() == wire.Killed || leftOut)
	}
	switch {
	case e.Origin() == wire.Unreadable:
	case known && !leftOut && g.endAt(at, since):
	case killed && g.endKilled():
	case !g.stack.hasRun && g.faults > 0: // in what its first routine has called
		g.out.sink.Mark(ops.Cut, 0)
	default:
		g.endOutside()
	}
	g.calls.cutAll() // what handlers had interrupted
	if late {        // what the handler has called back was taken to come later than it did
		g.out.sink.Mark(ops.Cut, 0)
	}
}

// endOf is where a thread has ended, if that is known: of a handler of which nothing is known, what
// that has interrupted. late: such a handler has called back the innermost activation.
func (g *signals) endOf(e wire.Event) (at location, known, late bool) {
	at = location{pc: e.Address(), regs: g.evidence.allRegisters(), faulted: e.Faulted()}
	at.hit = e.Faulted() || g.steps(e.Address())
	known = e.Origin() == wire.Inside
	switch {
	case e.Origin() == wire.ReturnsToImage:
		return location{outside: true, returns: e.Address(), regs: at.regs}, true, false
	case !known && g.pending != nil && !g.stack.hasRun: // nothing else is known of it
		return *g.pending, true, false
	case !g.inUnseenHandler():
		return at, known, false
	case g.calledBackBy(&at):
		return at, known, true
	}
	at.pc = g.evidence.callers[0].Address()
	if g.pending != nil && !g.d.program.Traces(at.pc) {
		at = *g.pending
	}
	at.faulted = g.hasFaulted(at.pc)
	at.hit = at.faulted
	at = g.interruptedFirst(at)
	return at, !at.isAnywhere(), false
}

// steps reports whether the instruction at pc is single-stepped and had the last event: what is
// killed there has been hit.
func (g *signals) steps(pc uint64) bool {
	if len(g.stack.frames) == 0 || g.stack.top().pos.Block == route.Exit {
		return false
	}
	f := g.stack.top()
	s := f.r.Site(f.pos.Block)
	return s != nil && s.Stepped && pc == s.Addr+f.r.Plan.Offset()
}

// endSince brings the thread to where a handler has come that has had no event: it is in that, or
// that has returned. Where it ends then is emitted only if that is in a traced routine, or called
// by one.
func (g *signals) endSince(pending location, outside bool) {
	found := g.goTo(pending)
	if outside {
		g.calls.cutAll()
	}
	if found.n != one || outside {
		g.out.sink.Mark(ops.Cut, 0)
	}
}

// endAt ends the thread where it is in an activation, or where the handler came that it is in: of
// what led there only what is certain is emitted, where several ways do. It reports false if
// nothing there is traced, nor leads there without an event; not since a handler has come that may
// have led there.
func (g *signals) endAt(at location, since bool) bool {
	found := g.goTo(at)
	switch {
	case found.n == one:
		return true
	case found.n > none, since, g.d.program.Traces(at.pc):
	case at.returns == 0 || !g.mayBeCalled(at):
		return false
	}
	g.calls.cutAll()
	g.out.sink.Mark(ops.Cut, 0)
	return true
}

// endKilled ends the thread, which has not ended by its own doing, in external code, where its last
// event was of a routine that had called none: of what led there only what is certain is emitted,
// where several ways do. It reports false where code is called that may call back: the thread is
// taken to have ended there.
func (g *signals) endKilled() bool {
	if len(g.stack.frames) == 0 || g.stack.top().atExternalCall() {
		return false
	}
	innermost, depth := *g.stack.top(), len(g.stack.frames)
	found := g.goTo(location{outside: true})
	switch {
	case found.n != one:
		g.calls.cutAll()
		g.out.sink.Mark(ops.Cut, 0)
	case innermost.interrupted.unknown && len(g.stack.frames) < depth:
		// The handler has jumped to where it ended.
		g.out.sink.Mark(ops.Cut, 0)
	}
	return true
}

// inUnseenHandler reports whether the thread ends in a signal handler that nothing is known of: one
// of external code, or without an event. What it has interrupted comes with the thread's end.
func (g *signals) inUnseenHandler() bool {
	if len(g.evidence.callers) == 0 || g.evidence.callers[0].Origin() != wire.Handler {
		return false
	}
	caller := g.evidence.callers[0]
	known := func(f frame) bool { return f.handler && f.caller == caller }
	return !slices.ContainsFunc(g.stack.frames, known)
}

// calledBackBy reports whether the innermost activation is below what a handler has interrupted at
// a location: so the handler has called it back, or what has called that.
func (g *signals) calledBackBy(at *location) bool {
	sp, known := at.stackPointer()
	if len(g.stack.frames) == 0 || !known {
		return false
	}
	cfa := g.stack.top().cfa
	return cfa < sp && sp-cfa <= near
}

// endOutside ends the thread in external code.
func (g *signals) endOutside() {
	for returned := false; len(g.stack.frames) > 0; {
		f := g.stack.top()
		if f.atFault || f.called && !returned || g.out.comeToExternalCall(f) {
			return
		}
		o, n := f.pos.ReturnsBy(f.called)
		if n == 0 {
			g.out.cutPath(f)
			return
		}
		jumped, fromExternal, handler := f.r.CallsExternal(o.Block), f.fromExternal, f.handler
		if f.interrupted.unknown && f.r.JumpsOutside(o.Block) {
			g.out.sink.Mark(ops.Cut, 0)
		}
		g.calls.returnAbove(len(g.stack.frames) - 2)
		returned = !handler
		if fromExternal && !handler || jumped {
			return
		}
	}
}

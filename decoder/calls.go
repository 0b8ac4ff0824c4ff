package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// A calls begins and ends the activations of a thread: each way by which one can end is here. What
// ends is emitted.
type calls struct {
	d     *Decoder
	stack *stack
	out   *emitter
}

// Bytes: with all vector and matrix registers a signal's frame is not larger, and what is as near
// is on the same stack.
const (
	signalFrame = 16 << 10
	near        = 1 << 20
)

// loseAll cuts the running paths off and leaves all activations: how they ended is not known.
func (c *calls) loseAll() {
	open := c.cutAll()
	if open == 0 {
		return
	}
	c.out.sink.Mark(ops.Unwind, uint64(open))
	for range open {
		c.out.sink.LeaveRoutine()
	}
}

// cutAll cuts the running path off, and those that handlers have interrupted, whose activations it
// leaves the inner ones for. All positions are forgotten; it returns how many activations have not
// been left. What handlers have interrupted that is not known is marked, before all that.
func (c *calls) cutAll() (open int) {
	c.markUnknown(0)
	outermost := len(c.stack.frames) - 1
	for i := range c.stack.frames {
		if f := &c.stack.frames[i]; !f.called && f.pos.Block != route.Exit {
			outermost = i
			break
		}
	}
	for i := len(c.stack.frames) - 1; i >= outermost && i >= 0; i-- {
		c.out.cutPath(&c.stack.frames[i])
		if i > outermost {
			c.out.sink.Mark(ops.Unwind, 1)
			c.out.sink.LeaveRoutine()
		}
	}
	c.stack.frames = c.stack.frames[:0]
	return outermost + 1
}

// enter begins an activation at its entry: a copy of f.
func (c *calls) enter(f *frame) *frame {
	if f.fromExternal {
		return c.enterBy(f, ops.External)
	}
	return c.enterBy(f, ops.Traced)
}

// enterBy is enter, where it is known by what.
func (c *calls) enterBy(f *frame, by ops.Caller) *frame {
	c.out.sink.EnterRoutine(f.r.ID, by)
	f.pos = f.r.AtEntry()
	return c.stack.push(f)
}

// switchAway takes the innermost piece of stack off, down to what external code called, or to frame
// i. It is kept where the thread may have switched to another stack.
func (c *calls) switchAway(i int) {
	k := len(c.stack.frames) - 1
	for k > i+1 && !c.stack.frames[k].fromExternal {
		k--
	}
	c.comeToLeavingCall(c.stack.top(), false)
	piece := append([]frame(nil), c.stack.frames[k:]...)
	c.dropFrom(k)
	if piece[0].fromExternal { // else what it called cannot come back without its caller
		c.stack.keepAway(piece)
	}
}

// leaveOverwritten takes off what cannot be on its stack any more, for external code calls back at
// cfa, and all that lies below.
func (c *calls) leaveOverwritten(cfa uint64) {
	for i := c.stack.firstOverwritten(cfa); len(c.stack.frames) > i; {
		c.switchAway(i - 1)
	}
}

// revive brings back a piece of stack that was switched away from, if it holds the activation and
// that can go on to the block, or stands there. first: a new activation may come to the block as
// well, in the same place.
func (c *calls) revive(a activation, block int, first bool, chain []wire.Event) bool {
	piece := c.stack.takeAway(a, block, first, chain)
	if piece == nil {
		return false
	}
	c.toExternalCall(a.cfa)
	c.out.sink.Mark(ops.Resume, uint64(len(piece)))
	for i := range piece {
		c.stack.push(&piece[i])
	}
	return true
}

// callFrom lets frame i come to its call at block b, which enters r, perhaps through routines
// without events that jump on. It reports false if no probe-free route leads to the call.
func (c *calls) callFrom(i, b int, r *route.Routine) bool {
	f := &c.stack.frames[i]
	var to *route.Transition
	if f.pos.Block != b || f.called {
		if to = f.pos.To(b, f.called); to == nil {
			return false
		}
	}
	c.returnAbove(i)
	f = &c.stack.frames[i]
	if to != nil {
		c.out.apply(f, to)
		f.standAt(b)
	}
	c.out.makeCall(f)
	if f.r.Kinds[b] == plan.Known && f.r.Callees[b] != r {
		run, ok := f.r.Callees[b].Relay(r)
		if !ok {
			c.d.anomaly("a call entered another routine",
				"caller", f.r.Plan.Name, "routine", r.Plan.Name)
		}
		c.out.emit(run)
	}
	return true
}

// tailJump begins an activation with the CFA and return address of the one at frame j, if that one
// may have left by a tail jump (rule 7). external: perhaps through external code.
func (c *calls) tailJump(j int, a activation, caller wire.Event, external bool) bool {
	if j >= len(c.stack.frames) {
		return false
	}
	f := &c.stack.frames[j]
	if !f.mayReturnTo(a.cfa, caller) || !c.stack.calleesReturn(j) {
		return false
	}
	for _, o := range f.pos.Outs(f.called) {
		var run []route.Emission
		ok := external && f.r.JumpsOutside(o.Block)
		mayHaveReturned := ok && f.caller == 0 // to a caller that has called anew
		if next := f.r.TailTarget(o.Block); next != nil {
			run, ok = next.Relay(a.r)
		}
		if !ok {
			continue
		}
		c.returnAbove(j)
		f = &c.stack.frames[j]
		c.out.apply(f, o.Transition)
		c.out.emit(run)
		if mayHaveReturned {
			c.out.sink.Mark(ops.Resume, 0)
		}
		next := f.jumpedTo(a, caller)
		c.stack.frames = c.stack.frames[:j]
		c.enterBy(next, ops.Traced)
		return true
	}
	return false
}

// tailJumpFromExternal begins an activation by a tail jump out of one whose caller is external
// code, or not known.
func (c *calls) tailJumpFromExternal(a activation, caller wire.Event, external bool) bool {
	for j := len(c.stack.frames) - 1; j >= 0 && c.stack.frames[j].lowest <= a.cfa; j-- {
		if f := &c.stack.frames[j]; f.fromExternal && f.mayReturnTo(a.cfa, caller) {
			return c.tailJump(j, a, caller, external)
		}
	}
	return false
}

// endEarlierHandlers ends the handlers that came before this one had run its first instruction: of
// signals that are delivered at once the last one's handler runs first, as if it had interrupted
// the one before. That one's frame is right above its own or, where only one of them has a stack of
// its own, below what was interrupted first. It returns the outermost of those that it ends.
func (c *calls) endEarlierHandlers(f *frame) (interrupter frame, ended bool) {
	entry := wire.MakeCaller(wire.Handler, f.r.Address())
	for i := range c.stack.frames {
		g := c.stack.frames[i]
		switch {
		case !g.handler || g.caller != entry:
		case f.cfa-g.cfa <= signalFrame,
			i > 0 && c.stack.frames[i-1].cfa-f.cfa <= near && g.cfa-f.cfa > near:
			c.returnAbove(i - 1)
			return g, true
		}
	}
	return frame{}, false
}

// handlerIsOver reports whether the innermost activation, f, is a handler that has ended, and with
// it what it jumped to, when external code calls back at cfa: above it, on the stack on which it
// has interrupted what is below it.
func (c *calls) handlerIsOver(f *frame, cfa uint64) bool {
	n := len(c.stack.frames)
	if !f.handler || n < 2 || len(c.stack.away) > 0 || cfa <= f.cfa ||
		c.stack.frames[n-2].cfa-f.cfa > signalFrame {
		return false
	}
	above := func(g frame) bool { return cfa <= g.cfa && g.cfa-f.cfa <= near }
	return slices.ContainsFunc(c.stack.frames[:n-1], above)
}

// endHandlerAt ends the handler that ran in the same place before: the next one has overwritten it.
// If another has come since that need not have interrupted it, that one may still run, and where
// the first is to end is not known yet; but most of many have ended.
func (c *calls) endHandlerAt(cfa uint64) {
	const most = 64
	handlers, outermost, innermost := 0, -1, -1
	for i := range c.stack.frames {
		f := &c.stack.frames[i]
		if !f.handler {
			continue
		}
		handlers++
		if f.cfa == cfa {
			innermost = i
			if outermost < 0 {
				outermost = i
			}
		}
	}
	runsBeside := func(o frame) bool { return o.handler && int(o.interrupted.least) <= innermost }
	switch {
	case innermost < 0:
	case handlers > most:
		c.returnAbove(outermost - 1)
	case !slices.ContainsFunc(c.stack.frames[innermost+1:], runsBeside):
		c.returnAbove(innermost - 1)
	}
}

// returnAbove ends the frames above i, innermost first. Those that can come to their end without an
// event did so. One that cannot was left (longjmp, exception) and with it all that stood on it, up
// to the external code which called it; such a piece may be a stack that was switched away from.
func (c *calls) returnAbove(i int) {
	for len(c.stack.frames)-1 > i {
		f := c.stack.top()
		o, n := f.pos.ReturnsBy(f.called)
		if n == 0 || f.mayHaveThrown() && c.stack.isStuckAbove(i) {
			c.switchAway(i)
			continue
		}
		if n > 1 {
			c.d.ambiguity("more than one route out without an event",
				"routine", f.r.Plan.Name, "from", f.address())
		}
		c.out.apply(f, o.Transition)
		tail, open, orphan := f.r.TailTarget(o.Block), f.r.JumpsOutside(o.Block), c.isOrphan(f)
		c.stack.pop()
		if tail != nil {
			run, _ := tail.FreeRun()
			c.out.emit(run)
			open = tail.Plan.MayLeaveCallOpen()
		}
		if orphan { // what its callers did then is not known
			c.out.sink.Mark(ops.Resume, 0)
		}
		if open && len(c.stack.frames)-1 > i {
			// It may have switched to another stack out of this call.
			c.stack.top().inExternal = c.stack.top().called
		}
	}
}

// isOrphan reports whether the activation has traced callers, or may have, of which nothing is
// known.
func (c *calls) isOrphan(f *frame) bool {
	switch {
	case !f.fromExternal || f.inferred:
		return false
	case f.caller == 0:
		return true
	case f.caller.Origin() == wire.Inside:
		_, traced := c.d.program.CallTo(f.caller.Address())
		return traced
	}
	return f.caller.Origin() == wire.Truncated
}

// unwindAbove drops the frames above i, which an exception or a jump has left. It reports whether
// all of them had returned before: then it came out of a later call.
func (c *calls) unwindAbove(i int) (returnedAll bool) {
	n := len(c.stack.frames) - 1 - i
	if n == 0 {
		return false
	}
	returned, known := false, c.mayHaveLeft(i)
	for known && len(c.stack.frames)-1 > i && c.hasReturned(len(c.stack.frames)-1, returned) {
		f := c.stack.top()
		threw := f.ranIntoExternal()
		returned = !threw && !f.handler
		c.returnAbove(len(c.stack.frames) - 2)
		if threw {
			break
		}
	}
	n = len(c.stack.frames) - 1 - i
	if n == 0 {
		return returned
	}
	c.comeToLeavingCall(c.stack.top(), returned)
	c.dropFrom(i + 1)
	return false
}

// dropFrom drops the frames from i on.
func (c *calls) dropFrom(i int) {
	c.markUnknown(i)
	c.out.sink.Mark(ops.Unwind, uint64(len(c.stack.frames)-i))
	for range c.stack.frames[i:] {
		c.out.sink.LeaveRoutine()
	}
	c.stack.frames = c.stack.frames[:i]
}

// markUnknown marks that it will not be known what a handler has interrupted, if there is such a
// one among the frames from i on.
func (c *calls) markUnknown(i int) {
	unknown := func(f frame) bool { return f.interrupted.unknown }
	if slices.ContainsFunc(c.stack.frames[i:], unknown) {
		c.out.sink.Mark(ops.Cut, 0)
	}
}

// mayHaveLeft reports whether something that is known may have left the frames above i, if those
// did return that can: else a signal handler of external code did, from within the innermost.
func (c *calls) mayHaveLeft(i int) bool {
	returned := false
	for k := len(c.stack.frames) - 1; k > i; k-- {
		f := &c.stack.frames[k]
		if !c.hasReturned(k, returned) || f.ranIntoExternal() {
			return true
		}
		returned = !f.handler
	}
	f := &c.stack.frames[i]
	_, ahead := c.out.externalCallAhead(f)
	return ahead || !returned || !f.called
}

// hasReturned reports whether frame k, the innermost but for what has returned, cannot be what is
// left from within: it stands at no call, none lies ahead, and it can come to its end. returned:
// what it called has come back.
func (c *calls) hasReturned(k int, returned bool) bool {
	f := &c.stack.frames[k]
	if f.called && !returned || !f.called && f.atExternalCall() {
		return false
	}
	if _, ok := c.out.externalCallAhead(f); ok {
		return false
	}
	_, n := f.pos.ReturnsBy(f.called)
	return n > 0
}

// comeToLeavingCall lets an activation that is left from within a call come to that call. returned:
// what the activation had called has come back.
func (c *calls) comeToLeavingCall(f *frame, returned bool) {
	switch {
	case f.called && !returned, c.out.comeToExternalCall(f):
	case !c.out.cutPath(f):
		// A handler of external code has left it, from here on or in what it has called.
		c.out.sink.Mark(ops.Cut, 0)
	}
}

// toExternalCall lets the innermost activation come to the call of external code out of which
// something is called back at cfa, if there is one. The plan puts at most one such call between two
// events.
func (c *calls) toExternalCall(cfa uint64) (found bool) {
	for len(c.stack.frames) > 0 {
		f := c.stack.top()
		if f.atExternalCall() {
			c.out.makeCall(f)
			return true
		}
		if b, ok := c.out.externalCallAhead(f); ok {
			c.out.goToCall(f, b)
			return true
		}
		o, n := f.pos.ReturnsBy(f.called)
		if n == 0 { // interrupted by a handler that is external code
			return false
		}
		jumped, over := f.r.CallsExternal(o.Block), c.handlerIsOver(f, cfa)
		c.returnAbove(len(c.stack.frames) - 2)
		if jumped && !over { // to the code that calls back
			if len(c.stack.frames) > 0 {
				c.stack.top().inExternal = c.stack.top().called
			}
			return true
		}
	}
	return false
}

package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// interrupt brings the thread to where it was interrupted: a signal handler comes in between, or
// the thread is dead. Activations that must have returned before are ended, and routines that have
// made no word yet are entered. It returns how many silent ways lead there, two standing for more. If
// there are several, only what they share moves: activations that have returned are ended, and the last
// path of one that has jumped away. over is how many of the frames had not ended before, as far as is
// known, and alive of how many that is certain: the innermost may have.
func (t *Thread) interrupt(where spot) (n, over, alive int) {
	ways := t.lookFor(where).thread(t)
	i := ways.frame
	switch ways.n {
	case 0:
		return 0, 0, 0
	case 1:
		word := t.here
		t.here = held{regs: where.regs}
		t.follow(i, ways.way)
		t.here = word
		return 1, len(t.frames), len(t.frames)
	}
	t.finishAbove(len(t.frames) - 1 - ways.returned)
	if ways.jumped {
		t.endPath(t.top())
	}
	if ways.ends {
		return ways.n, i + 1, i
	}
	return ways.n, i + 1, i + 1
}

// lookFor returns the search for the ways from where the thread stands to a spot.
func (t *Thread) lookFor(where spot) *search {
	faults, fault := t.faults, false
	if faults > 0 && where.regs != nil {
		fault = where.returns != 0 && where.regs[rsp] == t.fault
		if returned := where.returns == 0 && where.regs[rsp] == t.fault+8; fault || returned { // by what the handler has made of them
			faults--
		}
	}
	return &search{
		spot: where, d: t.d, cfa: t.d.activationAt(where), from: map[entered]found{}, mainRan: t.mainRan,
		behind: t.taken != nil && (where.outside || where.pc != t.taken.pc), // else it tells of that itself
		fault:  fault,
		abroad: faults > 0,
	}
}

// endInterrupters ends the handlers that came before this one had run its first instruction: of
// signals that are delivered at once the last one's handler runs first, as if it had interrupted
// the one before. That one's frame is right above its own or, where only one of them has a stack of
// its own, below what was interrupted first. It returns the outermost of those that it ends.
func (t *Thread) endInterrupters(f *frame) (interrupter frame, ended bool) {
	entry := wire.MakeCaller(wire.Handler, f.r.Addr+f.r.Offset())
	for i := range t.frames {
		g := t.frames[i]
		switch {
		case !g.handler || g.from != entry:
		case f.cfa-g.cfa <= signalFrame, i > 0 && t.frames[i-1].cfa-f.cfa <= near && g.cfa-f.cfa > near:
			t.finishAbove(i - 1)
			return g, true
		}
	}
	return frame{}, false
}

// isOver reports whether the innermost activation, f, is a handler that has ended, and with it what it
// jumped to, when code that is not observed calls back at cfa: above it, on the stack on which it
// has interrupted what is below it.
func (t *Thread) isOver(f *frame, cfa uint64) bool {
	n := len(t.frames)
	if !f.handler || n < 2 || len(t.away) > 0 || cfa <= f.cfa || t.frames[n-2].cfa-f.cfa > signalFrame {
		return false
	}
	return slices.ContainsFunc(t.frames[:n-1], func(g frame) bool { return cfa <= g.cfa && g.cfa-f.cfa <= near })
}

// Bytes: with all vector and matrix registers a signal's frame is not larger, and what is as near is
// on the same stack.
const (
	signalFrame = 16 << 10
	near        = 1 << 20
)

// leaveInterrupted drops the frames above i, where a handler that is not observed has come since the
// last word: it has jumped, or thrown, out of what it interrupted. What ran up to there is told, if
// one silent way leads there that does not end frame i; else `#cut` marks the place. It reports false
// if none has come.
func (t *Thread) leaveInterrupted(i int) bool {
	if t.taken == nil {
		return false
	}
	n := 0
	ways := t.lookFor(*t.taken).thread(t)
	if ways.frame > i || ways.frame == i && !ways.ends && len(t.frames)-1-ways.returned >= i {
		n, _, _ = t.interrupt(*t.taken)
	}
	if n != 1 && !t.cut(t.top()) {
		t.sink.Mark(ops.Cut, 0)
	}
	if len(t.frames)-1 > i {
		t.unwind(i + 1)
	}
	return true
}

// markLeft marks that what ran before a word is missing: up to where a handler that is not observed has
// come, in what had made no word yet, which it has left for one of the callers of that, the word's.
func (t *Thread) markLeft(a activation) {
	r, regs := t.lookFor(*t.taken).holder(), t.taken.regs
	switch {
	case r == nil, !r.Traced(), r.ProbeFree, r == a.r, regs == nil, regs[rsp] >= a.cfa, a.cfa-regs[rsp] > near, t.find(a, nil) < 0:
		return
	case slices.ContainsFunc(t.frames, func(f frame) bool { return f.r == r }):
		return
	}
	if f := t.top(); f.atOpenCall() {
		t.makeCall(f)
	}
	t.sink.Mark(ops.Cut, 0)
}

// runsAgain reports whether a word is that of an instruction which runs anew: it was hit, and faulted,
// and a handler that is not observed has mended what it faulted for.
func (t *Thread) runsAgain(a activation, s *plan.Site) bool {
	if len(t.frames) == 0 || t.taken.pc != s.Addr+a.r.Offset() {
		return false
	}
	f := t.top()
	return f.activation == a && f.st.block == s.Block && !f.called && (t.taken.faulted || s.Stepped && f.st.to(s.Block, false) == nil)
}

// endPath ends the running path of an activation that has jumped out of where it stands. That it is
// left is said when it is known where to.
func (t *Thread) endPath(f *frame) {
	m := newMover(f.st)
	m.finish()
	t.apply(f, &m.move)
	f.start, f.trail = origin{exit, ops.StartResume}, nil
}

// follow lets frame i walk its way to where it was interrupted.
func (t *Thread) follow(i int, way []hop) {
	for _, h := range way {
		switch h.kind {
		case hopHome:
			t.finishAbove(i - 1)
		case hopStay:
			t.finishAbove(i)
			t.makeCall(&t.frames[i])
		case hopStop:
			t.interruptAt(i, &h)
		case hopBack, hopBegin:
			if h.kind == hopBegin {
				t.sink.Mark(ops.Cut, 0) // what a handler has interrupted
			}
			t.enter(frame{activation: h.back, root: true, back: true})
		case hopCall:
			t.finishAbove(i)
			f := &t.frames[i]
			t.goToCall(f, h.block)
			if f.r.kind[h.block] == plan.Known {
				block := &f.r.Blocks[h.block]
				t.enter(frame{activation: activation{f.r.callee[h.block], f.cfa - uint64(block.Depth)}, from: wire.MakeCaller(wire.Inside, block.Hi+f.r.Offset())})
			}
		case hopTail:
			t.finishAbove(i)
			f := t.frames[i]
			t.apply(&f, h.out.move)
			t.frames = t.frames[:i]
			to := f.r.tailTarget(h.out.block)
			switch {
			case to == nil && !f.root && len(t.frames) > 0:
				t.top().open = t.top().called && f.r.jumpsAnywhere(h.out.block)
			case to != nil:
				t.enter(frame{activation: activation{to, f.cfa}, from: f.from, root: f.root, handler: f.handler, over: f.over, alive: f.alive, adrift: f.adrift, back: f.back})
			}
		}
		i = len(t.frames) - 1
	}
}

// handle begins a signal handler. Where several ways lead to what it interrupts, or none, nothing
// moves but what is certain: the handler is placed behind the last word then.
func (t *Thread) handle(f frame) {
	g, ended := t.endInterrupters(&f)
	if ended && f.from.Origin() == wire.Handler && t.d.beginsHandler(t.spotOf(&f)) {
		// Three handlers came at once: f seems to have interrupted the first, which has not run yet,
		// and so has interrupted what g has.
		f.over, f.alive, f.adrift = g.over, g.alive, g.adrift
		t.sink.Mark(ops.Handler, 0)
		t.enter(f)
		return
	}
	where := t.interruptedBy(&f)
	n, over, alive := 0, 0, 0
	if !where.anywhere() {
		n, over, alive = t.interrupt(where)
	}
	astray := n == 0 && where.returns != 0 && (t.taken != nil || t.mayBeCalled(where)) // else it only seems to return there
	if n == 0 && where.outside {
		where = spot{outside: true}
		if t.taken != nil { // in the handler that has come there, or behind it
			where, astray = *t.taken, true
		}
		n, over, alive = t.interrupt(where)
	}
	if n != 1 {
		t.endHandlers(f.cfa)
		f.adrift = !where.outside || where.returns != 0 || !t.heard || len(t.frames) > 0 && !t.top().atOpenCall()
		if len(t.frames) > 0 {
			t.pause(t.top())
		}
	}
	if astray {
		f.adrift, alive = true, 0
	}
	f.over, f.alive = min(over, len(t.frames)), min(alive, len(t.frames))
	t.sink.Mark(ops.Handler, 0)
	t.enter(f)
}

// mayBeCalled reports whether a spot to which no silent way is known may be where the thread is all the
// same: its return address is no left-over, code that is not observed may have called back what leads
// there, or come back to an activation that stands further out, or on another stack.
func (t *Thread) mayBeCalled(where spot) bool {
	s := t.lookFor(where)
	if s.fault || t.known != 0 || len(t.frames) > mostEntered || t.mayCallBack(where) {
		return true
	}
	leads := func(f frame) bool { return s.ofFrame(&f, true).n > 0 }
	return slices.ContainsFunc(t.frames, leads) || slices.ContainsFunc(t.away, func(piece []frame) bool { return slices.ContainsFunc(piece, leads) })
}

// mayCallBack reports whether code that is not observed may have called what silently leads to a spot.
func (t *Thread) mayCallBack(where spot) bool { return len(t.lookFor(where).origins()) > 0 }

// interruptedBy is where the thread was when a handler came.
func (t *Thread) interruptedBy(handler *frame) spot {
	switch from := handler.from; {
	case from.Origin() == wire.ReturnsToImage && len(t.regs) > 0:
		return spot{outside: true, returns: from.Address(), regs: registersOf(t.regs)}
	case from.Origin() == wire.Handler && t.d.observes(from.Address()):
		return t.interruptedFirst(t.spotOf(handler))
	}
	return spot{outside: true}
}

// spotOf is the instruction of an image before which a handler came, by its return address.
func (t *Thread) spotOf(handler *frame) spot {
	pc := handler.from.Address()
	faulted := t.hasFaulted(pc)
	return spot{pc: pc, regs: registersOf(t.regs), faulted: faulted, hit: faulted}
}

// interruptedFirst is what a handler has interrupted that comes at a spot: if another handler begins
// there, what both have.
func (t *Thread) interruptedFirst(where spot) spot {
	switch {
	case !t.d.beginsHandler(where):
		return where
	case t.taken != nil:
		return *t.taken
	}
	return spot{outside: true}
}

// beginsHandler reports whether a spot is where a signal's handler begins, none of which has run: of
// signals that are delivered at once, the next one's handler interrupts it there. The kernel passes
// it the signal, and where the frame has the signal's information and the context, which lies right
// above the return address: calls that look so are not made.
func (d *Decoder) beginsHandler(where spot) bool {
	const rax, rdx, rsi, rdi = 0, 2, 6, 7
	const signals, context, contextSize = 64, 8, 304 // struct ucontext of the kernel
	r, regs := d.plan.Containing(where.pc), where.regs
	return r != nil && where.pc == r.Addr+r.Offset() && !where.faulted && regs != nil &&
		regs[rax] == 0 && regs[rdi]-1 < signals && regs[rdx] == regs[rsp]+context && regs[rsi] == regs[rdx]+contextSize
}

// hasFaulted reports whether the handler that came last came for a fault of the instruction at pc.
func (t *Thread) hasFaulted(pc uint64) bool {
	return t.taken != nil && t.taken.faulted && t.taken.pc == pc
}

// isHandler reports whether what returns there is a signal handler.
func isHandler(from wire.Event) bool {
	return from.Origin() == wire.Handler || from.Origin() == wire.HandlerOutside || from.Origin() == wire.ReturnsToImage
}

// hasEndedPath reports whether no path is running: endPath has ended the last.
func (f *frame) hasEndedPath() bool { return f.start.kind == ops.StartResume && len(f.trail) == 0 }

// pause ends the running path of an activation behind its last word, unless that ends it anyway,
// with what it calls or jumps to.
func (t *Thread) pause(f *frame) {
	b := f.st.block
	if b == exit || f.called || f.hasEndedPath() {
		return
	}
	if f.atOpenCall() {
		t.makeCall(f)
		return
	}
	s, last := f.r.Site(b), len(f.r.Blocks[b].Insns)-1
	if s == nil || s.Insn == last && f.r.endsPath(b) {
		return
	}
	begun := 0 // instructions of the block that ran before the path began there
	if len(f.trail) == 1 {
		begun = f.skip
	}
	t.cut(f)
	if s.Insn < last {
		f.trail, f.skip = []int{b}, max(s.Insn+1, begun)
	}
}

// endsPath reports whether every path that comes to the end of block b ends there.
func (r *routine) endsPath(b int) bool {
	switch r.Blocks[b].End {
	case cfg.Fall, cfg.Jmp, cfg.Jcc, cfg.Table:
		return false
	}
	return true
}

// endHandlers ends the handler that ran in the same place before: the next one has overwritten it.
// If another has come since that need not have interrupted it, that one may still run, and where
// the first is to end is not known yet; but most of many have ended.
func (t *Thread) endHandlers(cfa uint64) {
	const most = 64
	handlers, outermost, innermost := 0, -1, -1
	for i := range t.frames {
		f := &t.frames[i]
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
	switch {
	case innermost < 0:
	case handlers > most:
		t.finishAbove(outermost - 1)
	case !slices.ContainsFunc(t.frames[innermost+1:], func(o frame) bool { return o.handler && o.alive <= innermost }):
		t.finishAbove(innermost - 1)
	}
}

// locate finds the block of an instruction and its index there.
func (r *routine) locate(pc uint64) (block, insn int, ok bool) {
	pc -= r.Offset()
	if !r.holds(pc) {
		return 0, 0, false
	}
	for b := range r.Blocks {
		if block := &r.Blocks[b]; block.Lo <= pc && pc < block.Hi {
			for k := range block.Insns {
				if block.Insns[k].Addr == pc {
					return b, k, true
				}
			}
		}
	}
	return 0, 0, false
}

func (r *routine) holds(pc uint64) bool {
	for _, x := range r.Ranges {
		if x[0] <= pc && pc < x[1] {
			return true
		}
	}
	return false
}

// interruptAt ends the running path of frame i before the instruction where it stops.
func (t *Thread) interruptAt(i int, stop *hop) {
	f, b, k := &t.frames[i], stop.block, stop.insn
	if f.st.standsAt(b, k, f.called, stop.hit) {
		t.finishAbove(i)
		f = &t.frames[i]
		t.emitPrefix(f, before(t.blocks(f), k), k)
		f.trail, f.skip = []int{b}, k
		if s := f.r.Site(b); s != nil {
			f.stopped = stop.fault && k == s.Insn
		}
		return
	}
	t.finishAbove(i)
	f = &t.frames[i]
	told := f.st
	node, _ := told.silentWays().find(b)
	t.apply(f, told.toSpot(node, k, f.called).move(nil))
	f.st, f.called = f.r.at(b, 0), false
	t.emitPrefix(f, before(t.blocks(f), k), k)
	st := f.r.justBefore(b, k)
	st.known = told.known
	f.st, f.skip, f.held = st, k, t.here
}

// before lists the blocks that have run, in part at least, before instruction k of the last.
func before(blocks []int, k int) []int {
	if k == 0 {
		return blocks[:len(blocks)-1]
	}
	return blocks
}

// standsAt reports whether the activation has come no further since its last word than to instruction k
// of block b. Where it has spoken itself, it must have come there anew, if it can have, unless that is
// known to have been hit.
func (st *state) standsAt(b, k int, called, hit bool) bool {
	if st.block != b || called {
		return false
	}
	s := st.r.Site(b)
	return s == nil || k > s.Insn || k == s.Insn && (hit || st.to(b, false) == nil)
}

// endAfter tells how a path ends whose last block is the trail's.
func (r *routine) endAfter(trail []int) ops.End {
	b := trail[len(trail)-1]
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

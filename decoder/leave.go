package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// finishAbove ends the frames above i, innermost first. Those that can come to their end silently
// did so. One that cannot was left (longjmp, exception) and with it all that stood on it, up to the
// code that is not observed which called it; such a piece may be a stack that was switched away
// from.
func (t *Thread) finishAbove(i int) {
	for len(t.frames)-1 > i {
		f := t.top()
		o, n := f.st.returnsBy(f.called)
		if n == 0 || f.mayHaveThrown() && t.stuckBelow(i) {
			t.setAside(i)
			continue
		}
		if n > 1 {
			t.d.ambiguous++
			t.d.log.Debug("more than one silent way out", "routine", f.r.Name, "from", f.address())
		}
		t.apply(f, o.move)
		tail, open, orphan := f.r.tailTarget(o.block), f.r.jumpsAnywhere(o.block), t.isOrphan(f)
		t.frames = t.frames[:len(t.frames)-1]
		if tail != nil {
			t.emit(tail.silent().acts)
			open = tail.MayLeaveCallOpen()
		}
		if orphan { // what its callers did then is not known
			t.sink.Mark(ops.Resume, 0)
		}
		if open && len(t.frames)-1 > i { // it may have switched to another stack out of this call
			t.top().open = t.top().called
		}
	}
}

// mayHaveThrown reports whether the activation may have been left from within a call of code that
// is not observed, where it stands or that it has come to silently.
func (f *frame) mayHaveThrown() bool {
	return f.atOpenCall() || f.st.passes(f.called) && len(f.st.silentWays().open) > 0
}

// isOrphan reports whether the activation has callers that are observed, or may have, and that
// nothing is known of.
func (t *Thread) isOrphan(f *frame) bool {
	switch {
	case !f.root || f.back:
		return false
	case f.from == 0:
		return true
	case f.from.Origin() == wire.Inside:
		_, observed := t.d.returns[f.from.Address()]
		return observed
	}
	return f.from.Origin() == wire.Truncated
}

// stuckBelow reports whether an activation between frame i and the innermost, on the same piece of
// stack, cannot come to its end silently.
func (t *Thread) stuckBelow(i int) bool {
	for k := len(t.frames) - 1; k > i; k-- {
		if !mayEnd(t.frames, k) {
			return true
		}
		if t.frames[k].root {
			return false
		}
	}
	return false
}

// leaveAbove drops the frames above i, which an exception or a jump has left. It reports whether all
// of them had returned before: then it came out of a later call.
func (t *Thread) leaveAbove(i int) (returnedAll bool) {
	n := len(t.frames) - 1 - i
	if n == 0 {
		return false
	}
	returned, known := false, t.mayHaveLeft(i)
	for known && len(t.frames)-1 > i && t.hasReturned(len(t.frames)-1, returned) {
		f := t.top()
		threw := f.ranInto()
		returned = !threw && !f.handler
		t.finishAbove(len(t.frames) - 2)
		if threw {
			break
		}
	}
	n = len(t.frames) - 1 - i
	if n == 0 {
		return returned
	}
	t.toThrow(t.top(), returned)
	t.unwind(i + 1)
	return false
}

// unwind drops the frames from i on.
func (t *Thread) unwind(i int) {
	t.markAdrift(i)
	t.sink.Mark(ops.Unwind, uint64(len(t.frames)-i))
	for range t.frames[i:] {
		t.sink.LeaveRoutine()
	}
	t.frames = t.frames[:i]
}

// markAdrift marks that it will not be known what a handler has interrupted, if there is such a one
// among the frames from i on.
func (t *Thread) markAdrift(i int) {
	if slices.ContainsFunc(t.frames[i:], func(f frame) bool { return f.adrift }) {
		t.sink.Mark(ops.Cut, 0)
	}
}

// mayHaveLeft reports whether something that is known may have left the frames above i, if those did
// return that can: else a signal's handler did that is not observed, from within the innermost.
func (t *Thread) mayHaveLeft(i int) bool {
	returned := false
	for k := len(t.frames) - 1; k > i; k-- {
		f := &t.frames[k]
		if !t.hasReturned(k, returned) || f.ranInto() {
			return true
		}
		returned = !f.handler
	}
	f := &t.frames[i]
	_, ahead := t.openCallAhead(f)
	return ahead || !returned || !f.called
}

// ranInto reports whether an activation that has ended came to code that is not observed by that: to
// what called it, or by a jump.
func (f *frame) ranInto() bool {
	o, _ := f.st.returnsBy(f.called)
	return f.root && !f.handler || f.r.jumpsAnywhere(o.block)
}

// hasReturned reports whether frame k, the innermost but for what has returned, cannot be what is
// left from within: it stands at no call, none lies ahead, and it can come to its end. returned:
// what it called has come back.
func (t *Thread) hasReturned(k int, returned bool) bool {
	f := &t.frames[k]
	if f.called && !returned || !f.called && f.atOpenCall() {
		return false
	}
	if _, ok := t.openCallAhead(f); ok {
		return false
	}
	_, n := f.st.returnsBy(f.called)
	return n > 0
}

// toThrow lets an activation that is left from within a call come to that call. returned: what the
// activation had called has come back.
func (t *Thread) toThrow(f *frame, returned bool) {
	switch {
	case f.called && !returned, t.comeToOpenCall(f):
	case !t.cut(f): // a handler that is not observed has left it, from here on or in what it has called
		t.sink.Mark(ops.Cut, 0)
	}
}

// cut emits what is known of a path whose tail is not. It reports whether it has said so.
func (t *Thread) cut(f *frame) (marked bool) {
	b := f.st.block
	if b == exit || f.called || f.stopped || f.hasEndedPath() {
		return false
	}
	insns, done := 0, false
	if s := f.r.Site(b); s != nil {
		done = s.Insn == len(f.r.Blocks[b].Insns)-1
		if !done {
			insns = s.Insn + 1
		}
	}
	switch {
	case done && f.r.kind[b] != plan.NoCallee && f.r.Blocks[b].End != cfg.Jcc && f.r.Blocks[b].End != cfg.Tail:
		t.makeCall(f)
		return false
	case done && len(f.st.next) == 1 && f.endsOn(f.st.next[0]):
		m := newMover(f.st)
		if f.st.next[0] == exit {
			m.finish()
		} else {
			m.step(f.st.next[0], false)
		}
		t.apply(f, &m.move)
		t.sink.Mark(ops.Cut, 0) // the path after it may have begun
		f.start, f.trail = origin{exit, ops.StartResume}, nil
		return true
	}
	return t.emitPrefix(f, t.blocks(f), insns)
}

// emitPrefix emits the running path as it was cut off: these blocks, insns instructions of the last
// (0: all). The rest, if there is one, resumes. It reports false if there is nothing to be emitted.
func (t *Thread) emitPrefix(f *frame, blocks []int, insns int) (emitted bool) {
	n := len(blocks)
	emitted = n > 1 || n == 1 && (insns == 0 || insns > f.skip)
	if emitted {
		t.sink.NewPath(f.r.ID, t.d.partial(f.r, Partial{Start: f.start.kind, End: ops.EndCut, Blocks: blocks, Skip: f.skip, Insns: insns}), 1)
		t.sink.Mark(ops.Cut, 0)
	}
	f.number, f.start, f.trail, f.skip = 0, origin{exit, ops.StartResume}, nil, 0
	return emitted
}

// endsOn reports whether the running path ends on the edge from the frame's block to next.
func (f *frame) endsOn(next int) bool {
	if next == exit {
		return true
	}
	_, ends, _, _ := f.r.numbers.Step(f.st.block, next)
	return ends
}

// blocks lists those of the running path up to the frame's position.
func (t *Thread) blocks(f *frame) []int {
	if f.start.kind == ops.StartResume {
		return f.trail
	}
	p, err := f.r.numbers.Decode(f.number) // the ways on from here whose addends are 0 complete it
	if err != nil {
		return []int{f.st.block}
	}
	for i, b := range p.Blocks {
		if b == f.st.block {
			return p.Blocks[:i+1]
		}
	}
	return p.Blocks
}

// flows reports whether frame i comes to block b by ordinary flow, not by an exception or a second
// return: plans leave no silent way by which it could be either.
func (t *Thread) flows(i, b int) bool {
	f := &t.frames[i]
	m, ok := f.st.silentWays().find(b)
	if !ok || !f.st.passes(f.called) || t.throws(i, b) {
		return false
	}
	way := f.st.silentWays().way(m)
	return !slices.ContainsFunc(way[:len(way)-1], func(n int) bool { return f.r.mayThrow(n, b) })
}

// mayLand reports whether frame i may come to block b by an exception or a second return: out of
// the call where it stands, or one that it may have come to silently.
func (t *Thread) mayLand(i, b int) bool {
	f := &t.frames[i]
	return t.throws(i, b) || f.st.passes(f.called) && slices.ContainsFunc(f.st.silentWays().nodes, func(n node) bool {
		return f.r.Site(n.block) == nil && f.r.mayThrow(n.block, b)
	})
}

// throws reports whether what the call where frame i stands has entered may have come to block to
// otherwise than by its return. What is observed does so only out of calls that it has not left.
func (t *Thread) throws(i, to int) bool {
	f := &t.frames[i]
	b := f.st.block
	if b == exit || !f.r.landsAt(b, to) {
		return false
	}
	if f.r.kind[b] == plan.Known {
		return f.called && (f.r.callee[b].MayLeaveCallOpen() || !t.haveReturned(i))
	}
	return f.r.mayThrow(b, to)
}

// mayThrow reports whether the call of block b enters code that is not observed, which may come to
// block to otherwise than by its return.
func (r *routine) mayThrow(b, to int) bool {
	return (r.kind[b] == plan.External || r.kind[b] == plan.Unknown) && r.landsAt(b, to)
}

// landsAt reports whether control may come out of the call that ends block b to block to otherwise
// than by its return: it throws, or returns once more from an earlier call.
func (r *routine) landsAt(b, to int) bool {
	block := &r.Blocks[b]
	return slices.Contains(block.Pads, to) || r.again[to] && block.IsCall() && !slices.Contains(block.Succ, to)
}

// land brings frame i to a landing pad: the call where it stands threw, or one that it came to
// silently.
func (t *Thread) land(i, pad int) {
	f := &t.frames[i]
	here := f.st.block != exit && f.r.landsAt(f.st.block, pad)
	switch {
	case t.leaveInterrupted(i):
	case here && i < len(t.frames)-1:
		if f.r.Faulty && t.haveReturned(i) { // or they returned, and what came then faulted
			t.sink.Mark(ops.Cut, 0)
		}
		t.leaveAbove(i)
	case here:
		t.makeCall(f)
		if f.r.Faulty && f.r.Blocks[f.st.block].End != cfg.NoReturn { // or it returned, and what came then faulted
			t.sink.Mark(ops.Cut, 0)
		}
	default:
		t.toThrowingCall(i, pad)
	}
	t.jumpTo(&t.frames[i], pad, ops.StartPad)
}

// toThrowingCall lets frame i come to the call that can throw to the pad.
func (t *Thread) toThrowingCall(i, pad int) {
	f := &t.frames[i]
	best := exit
	if f.st.passes(f.called) {
		for _, n := range f.st.silentWays().nodes {
			if f.r.Site(n.block) == nil && f.r.mayThrow(n.block, pad) {
				if best != exit {
					t.d.ambiguous++
					t.d.log.Debug("more than one call may have thrown", "routine", f.r.Name, "pad", f.r.Blocks[pad].Lo)
					break
				}
				best = n.block
			}
		}
	}
	if best == exit || f.r.Faulty {
		if !f.r.Faulty {
			t.anomaly("no call that throws to the landing pad", "routine", f.r.Name, "from", f.address(), "pad", f.r.Blocks[pad].Lo)
		}
		t.leaveAbove(i)
		f = &t.frames[i]
		if t.cut(f); f.called && f.r.Faulty {
			t.sink.Mark(ops.Cut, 0)
		}
		return
	}
	m := f.st.to(best, f.called)
	t.finishAbove(i)
	f = &t.frames[i]
	t.apply(f, m)
	f.st, f.called = f.r.at(best, 0), false
	t.makeCall(f)
}

// returnAgain brings frame i to the continuation of a call that returns a second time (longjmp).
func (t *Thread) returnAgain(i, b int) {
	switch {
	case t.leaveInterrupted(i):
	case i == len(t.frames)-1:
		t.toThrow(&t.frames[i], false)
	case t.leaveAbove(i):
		t.toThrow(&t.frames[i], true)
	}
	t.jumpTo(&t.frames[i], b, ops.StartCall)
}

// returnUnseen brings frame i to block b where no silent way leads there: a call of unknown code,
// which may be setjmp, has returned a second time. It reports false unless b lies behind just one
// such call.
func (t *Thread) returnUnseen(i, b int) bool {
	r := t.frames[i].r
	behind, n := exit, 0
	for c := range r.Blocks {
		if r.kind[c] != plan.Unknown || r.Blocks[c].End != cfg.CallInd {
			continue
		}
		next := r.Blocks[c].Succ[0]
		if next == b || r.Site(next) == nil && r.at(next, 0).to(b, false) != nil {
			behind, n = next, n+1
		}
	}
	if n != 1 {
		return false
	}
	t.returnAgain(i, behind)
	if f := &t.frames[i]; behind != b {
		f.st = r.at(behind, 0)
		t.apply(f, f.st.to(b, false))
	}
	return true
}

// jumpTo begins a path at block b.
func (t *Thread) jumpTo(f *frame, b int, kind ops.Start) {
	id, ok := f.r.numbers.Begin(b, paths.Start(kind))
	if !ok {
		t.anomaly("no path begins here", "routine", f.r.Name, "block", f.r.Blocks[b].Lo)
		t.sink.Mark(ops.Resume, 1)
		t.resumeAt(f, b)
		return
	}
	f.number, f.start, f.trail, f.skip, f.called = id, origin{b, kind}, nil, 0, false
}

package decoder

import (
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/plan"
)

// HasRun reports whether a thread has run anything that is observed, by the first batch that comes
// of it: a kernel that knows nothing of routines tells of all that end in an image, or in a handler
// that has interrupted one.
func (d *Decoder) HasRun(first wire.Batch) bool {
	if first.Hits > 0 || first.Len() == 0 {
		return true
	}
	for i := range first.Len() {
		switch w := first.Event(i); w.Kind() {
		case wire.Interrupt:
			if d.observes(w.Address()) {
				return true
			}
		case wire.Fault: // in what it has called
			return true
		case wire.Caller, wire.End:
			place := w.Origin()
			if _, calls := d.returns[w.Address()]; place == wire.ReturnsToImage && calls || (place == wire.Inside || place == wire.Handler) && d.observes(w.Address()) {
				return true
			}
		}
	}
	return false
}

// end takes a thread's end. If it ended in other code, what led there silently has run: up to the
// first call of such code, or a return to it, or to where a handler came that it ended in.
func (t *Thread) end(w wire.Event) {
	t.ended = true
	where, known, late := spot{pc: w.Address(), regs: registersOf(t.regs), faulted: w.Faulted(), hit: w.Faulted() || t.steps(w.Address())}, w.Origin() == wire.Inside, false
	switch {
	case w.Origin() == wire.ReturnsToImage:
		where, known = spot{outside: true, returns: w.Address(), regs: where.regs}, true
	case !known && t.taken != nil && !t.heard: // nothing else is told of it
		where, known = *t.taken, true
	case t.inUnseenHandler():
		if late = t.calledBackBy(where.regs); !late {
			if where.pc, known = t.from[0].Address(), true; t.taken != nil && !t.d.observes(where.pc) {
				where = *t.taken
			}
			where.faulted = t.hasFaulted(where.pc)
			where.hit = where.faulted
			where = t.interruptedFirst(where)
			known = !where.anywhere()
		}
	}
	leftOut := known && !where.outside && !t.d.observes(where.pc)
	killed := w.Origin() == wire.Killed || w.Origin() == wire.ReturnsToImage || leftOut
	since := t.taken != nil && t.heard && (w.Origin() == wire.Inside && !leftOut || killed && !t.inUnseenHandler())
	if since {
		t.endSince(*t.taken, w.Origin() == wire.Killed || leftOut)
	}
	switch {
	case w.Origin() == wire.Unreadable:
	case known && !leftOut && t.endAt(where, since):
	case killed && t.endAbroad():
	case !t.heard && t.faults > 0: // in what its first routine has called
		t.sink.Mark(ops.Cut, 0)
	default:
		t.endOutside()
	}
	t.cutAll() // what handlers had interrupted
	if late {  // what the handler has called back was taken to come later than it did
		t.sink.Mark(ops.Cut, 0)
	}
}

// steps reports whether the instruction at pc is single-stepped and said the last word: what is killed
// there has been hit.
func (t *Thread) steps(pc uint64) bool {
	if len(t.frames) == 0 || t.top().st.block == exit {
		return false
	}
	f := t.top()
	s := f.r.Site(f.st.block)
	return s != nil && s.Stepped && pc == s.Addr+f.r.Offset()
}

// endSince brings the thread to where a handler has come that has said nothing: it is in that, or that
// has returned. Where it ends then is told only if that is in what is observed, or called by that.
func (t *Thread) endSince(taken spot, abroad bool) {
	n, _, _ := t.interrupt(taken)
	if abroad {
		t.cutAll()
	}
	if n != 1 || abroad {
		t.sink.Mark(ops.Cut, 0)
	}
}

// endAt ends the thread where it is in an activation, or where the handler came that it is in: of
// what led there only what is certain is told, where several ways do. It reports false if nothing
// there is observed, nor leads there silently; not since a handler has come that may have led there.
func (t *Thread) endAt(where spot, since bool) bool {
	n, _, _ := t.interrupt(where)
	switch {
	case n == 1:
		return true
	case n == 0 && !since && !t.d.observes(where.pc) && !(where.returns != 0 && t.mayBeCalled(where)):
		return false
	}
	t.cutAll()
	t.sink.Mark(ops.Cut, 0)
	return true
}

// endAbroad ends the thread, which has not ended by its own doing, in code that is not observed, where
// its last word was of a routine that had called none: of what led there only what is certain is
// told, where several ways do. It reports false where code is called that may call back: the thread is
// taken to have ended there.
func (t *Thread) endAbroad() bool {
	if len(t.frames) == 0 || t.top().atOpenCall() {
		return false
	}
	innermost, depth := *t.top(), len(t.frames)
	switch n, _, _ := t.interrupt(spot{outside: true}); {
	case n != 1:
		t.cutAll()
		t.sink.Mark(ops.Cut, 0)
	case innermost.adrift && len(t.frames) < depth: // the handler has jumped to where it ended
		t.sink.Mark(ops.Cut, 0)
	}
	return true
}

// inUnseenHandler reports whether the thread ends in a signal handler that nothing is known of: one
// that is not observed, or has made no word. What it has interrupted comes with the thread's end.
func (t *Thread) inUnseenHandler() bool {
	return len(t.from) > 0 && t.from[0].Origin() == wire.Handler &&
		!slices.ContainsFunc(t.frames, func(f frame) bool { return f.handler && f.from == t.from[0] })
}

// calledBackBy reports whether the innermost activation is below what a handler has interrupted,
// where registers held this: so the handler has called it back, or what has called that.
func (t *Thread) calledBackBy(regs *registers) bool {
	if len(t.frames) == 0 || regs == nil {
		return false
	}
	cfa := t.top().cfa
	return cfa < regs[rsp] && regs[rsp]-cfa <= near
}

// endOutside ends the thread in code that is not observed.
func (t *Thread) endOutside() {
	for returned := false; len(t.frames) > 0; {
		f := t.top()
		if f.stopped || f.called && !returned || t.comeToOpenCall(f) {
			return
		}
		o, n := f.st.returnsBy(f.called)
		if n == 0 {
			t.cut(f)
			return
		}
		end, root, handler := f.r.kind[o.block], f.root, f.handler
		if f.adrift && f.r.jumpsAnywhere(o.block) {
			t.sink.Mark(ops.Cut, 0)
		}
		t.finishAbove(len(t.frames) - 2)
		returned = !handler
		if root && !handler || end == plan.External || end == plan.Unknown {
			return
		}
	}
}

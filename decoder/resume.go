package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/plan"
)

// resync begins anew with the whole chain of callers: each stands at its call. What they did before
// is not known.
func (t *Thread) resync(a activation, block int, chain []wire.Event) {
	t.cutAll()
	t.away = nil
	list := []frame{{activation: a, from: chain[0].Plain()}}
	for k, w := range chain {
		c, known := t.d.returns[w.Address()]
		if w.Origin() != wire.Inside || !known || c.r.Blocks[c.block].Depth < 0 {
			break
		}
		f := frame{activation: activation{c.r, list[k].cfa + uint64(c.r.Blocks[c.block].Depth)}, st: c.r.at(c.block, 0), called: true, start: origin{exit, ops.StartCall}}
		if k+1 < len(chain) {
			f.from = chain[k+1].Plain()
		}
		list = append(list, f)
	}
	list[len(list)-1].root = true
	t.known = list[len(list)-1].activation.cfa
	t.sink.Mark(ops.Resume, uint64(len(list)))
	for k := len(list) - 1; k >= 0; k-- {
		t.push(list[k])
	}
	t.resumeAt(t.top(), block)
}

// reappear takes up an activation that has stood, since before the thread was met, at a call which
// came to the activations that are known, perhaps through code that is not observed, and lets it
// come to a block. If there is just one such call with a silent way to the block, the activation
// goes on behind it, else with the block. It reports false if there is none: then the activation is
// a new one.
func (t *Thread) reappear(a activation, block int) bool {
	if t.known == 0 || a.cfa <= t.known || len(t.frames) == 0 {
		return false
	}
	call, n, lands := exit, 0, false
	for b := range a.r.Blocks {
		if t.mayLeadTo(a.r, b) && a.r.at(b, 0).to(block, true) != nil {
			call, n = b, n+1
		}
		lands = lands || a.r.mayComeBy(b, block)
	}
	anywhere := t.metInHandlerOf(a.r)
	if n == 0 && !lands && !anywhere {
		return false
	}
	t.known = a.cfa
	if lands {
		t.abandon()
	} else {
		t.finishAbove(-1)
	}
	t.sink.Mark(ops.Resume, 1)
	f := t.push(frame{activation: a, root: true})
	if n > 1 || lands || anywhere || a.r.First(block) { // it may be a new activation in the same place
		t.resumeAt(f, block)
		return true
	}
	f.st, f.called, f.start = a.r.at(call, 0), true, origin{exit, ops.StartCall}
	t.apply(f, f.st.to(block, true))
	f.st, f.called = f.r.at(block, 0), false
	return true
}

// reappearAtCall takes up a caller that may have stood at its call since before the thread was met:
// what it called may have jumped on to a routine, and spoken before. It reports false if the
// caller, known or not, must have made the call for that routine.
func (t *Thread) reappearAtCall(c place, cfa uint64, to *routine) bool {
	callee := c.r.callee[c.block]
	if t.known == 0 || cfa <= t.known || len(t.frames) == 0 || callee == nil || !callee.mayJumpOnTo(to) {
		return false
	}
	t.known = cfa
	t.finishAbove(-1)
	t.sink.Mark(ops.Resume, 1)
	t.push(frame{activation: activation{c.r, cfa}, root: true, st: c.r.at(c.block, 0), called: true, start: origin{exit, ops.StartCall}})
	return true
}

// mayComeBy reports whether the call of block b may throw, or return a second time, to where a
// silent way leads to a block from.
func (r *routine) mayComeBy(b, block int) bool {
	if !r.Blocks[b].IsCall() || r.kind[b] == plan.Harmless {
		return false
	}
	for to := range r.Blocks {
		if (r.pad[to] || r.again[to]) && r.landsAt(b, to) && (to == block || r.Site(to) == nil && r.at(to, 0).to(block, false) != nil) {
			return true
		}
	}
	return false
}

// mayLeadTo reports whether the call of block b may have come to the outermost activation that is
// known.
func (t *Thread) mayLeadTo(r *routine, b int) bool {
	if !r.Blocks[b].CallReturns() {
		return false
	}
	switch r.kind[b] {
	case plan.External, plan.Unknown:
		return true
	case plan.Known:
		from := t.frames[0].from
		if r.callee[b].MayLeaveCallOpen() || from == 0 {
			return true
		}
		switch from.Origin() {
		case wire.Inside, wire.Handler, wire.ReturnsToImage:
			return true
		}
	}
	return false
}

// metInHandlerOf reports whether the thread was met in a signal handler that had interrupted the
// routine: an activation of it may stand at any instruction.
func (t *Thread) metInHandlerOf(r *routine) bool {
	from := t.frames[0].from
	if from.Origin() != wire.Handler {
		return false
	}
	_, _, ok := r.locate(from.Address())
	return ok
}

// resume begins an activation in its middle: nothing is known of its callers.
func (t *Thread) resume(a activation, block int) {
	t.toOpenCall(a.cfa)
	t.sink.Mark(ops.Resume, 1)
	t.push(frame{activation: a, root: true})
	t.resumeAt(t.top(), block)
}

// resumeCaller begins a caller in its middle: it is known to stand at its call. It reports false if
// its frame is not known.
func (t *Thread) resumeCaller(c place, cfa uint64, depth int) bool {
	t.toOpenCall(cfa)
	t.sink.Mark(ops.Resume, 1)
	if depth < 0 {
		return false
	}
	t.push(frame{activation: activation{c.r, cfa + uint64(depth)}, root: true, st: c.r.at(c.block, 0), called: true, start: origin{exit, ops.StartCall}})
	return true
}

// resumeAt begins a path in its middle, at block b.
func (t *Thread) resumeAt(f *frame, b int) {
	f.st, f.called = f.r.at(b, 0), false
	f.number, f.start, f.trail, f.skip = 0, origin{b, ops.StartResume}, []int{b}, 0
}

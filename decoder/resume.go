package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// standingAt is the frame of a caller that stands at its call; what it did before is not known.
func standingAt(c route.Call, cfa uint64) *frame {
	return &frame{
		activation: activation{c.Routine, cfa},
		pos:        c.Routine.At(c.Block, 0), called: true, path: behindCall(),
	}
}

// resync begins anew with the whole chain of callers: each stands at its call. What they did before
// is not known.
func (p *placer) resync(a activation, block int, chain []wire.Event) {
	p.calls.cutAll()
	p.stack.away = nil
	list := []frame{{activation: a, caller: chain[0].Plain()}}
	for k, caller := range chain {
		c, known := p.d.program.CallTo(caller.Address())
		if caller.Origin() != wire.Inside || !known || c.Routine.Blocks[c.Block].Depth < 0 {
			break
		}
		f := standingAt(c, list[k].cfa+uint64(c.Routine.Blocks[c.Block].Depth))
		if k+1 < len(chain) {
			f.caller = chain[k+1].Plain()
		}
		list = append(list, *f)
	}
	outermost := &list[len(list)-1]
	outermost.fromExternal = true
	p.stack.knownUpTo = outermost.cfa
	p.out.sink.Mark(ops.Resume, uint64(len(list)))
	for k := len(list) - 1; k >= 0; k-- {
		p.stack.push(&list[k])
	}
	p.out.resumeAt(p.stack.top(), block)
}

// isFurtherOut reports whether an activation at cfa may have stood, since before the thread was
// met, further out than all that are known.
func (p *placer) isFurtherOut(cfa uint64) bool {
	return p.stack.knownUpTo != 0 && cfa > p.stack.knownUpTo && len(p.stack.frames) > 0
}

// reappear takes up an activation that has stood, since before the thread was met, at a call which
// came to the activations that are known, perhaps through external code, and lets it come to a
// block. If there is just one such call with a probe-free route to the block, the activation goes
// on behind it, else with the block. It reports false if there is none: then the activation is a
// new one.
func (p *placer) reappear(a activation, block int) bool {
	if !p.isFurtherOut(a.cfa) {
		return false
	}
	call, n, lands := route.Exit, 0, false
	for b := range a.r.Blocks {
		if p.mayLeadTo(a.r, b) && a.r.At(b, 0).To(block, true) != nil {
			call, n = b, n+1
		}
		lands = lands || a.r.ComesByLanding(b, block)
	}
	anywhere := p.metInHandlerOf(a.r)
	if n == 0 && !lands && !anywhere {
		return false
	}
	p.stack.knownUpTo = a.cfa
	if lands {
		p.calls.loseAll()
	} else {
		p.calls.returnAbove(-1)
	}
	p.out.sink.Mark(ops.Resume, 1)
	f := p.stack.push(&frame{activation: a, fromExternal: true})
	if n > 1 || lands || anywhere || a.r.Plan.First(block) {
		// It may be a new activation in the same place.
		p.out.resumeAt(f, block)
		return true
	}
	f.pos, f.called, f.path = a.r.At(call, 0), true, behindCall()
	p.out.apply(f, f.pos.To(block, true))
	f.standAt(block)
	return true
}

// reappearAtCall takes up a caller that may have stood at its call since before the thread was met:
// what it called may have jumped on to a routine, and had events before. It reports false if the
// caller, known or not, must have made the call for that routine.
func (p *placer) reappearAtCall(c route.Call, cfa uint64, to *route.Routine) bool {
	callee := c.Routine.Callees[c.Block]
	if !p.isFurtherOut(cfa) || callee == nil || !callee.MayJumpOnTo(to) {
		return false
	}
	p.stack.knownUpTo = cfa
	p.calls.returnAbove(-1)
	p.out.sink.Mark(ops.Resume, 1)
	f := standingAt(c, cfa)
	f.fromExternal = true
	p.stack.push(f)
	return true
}

// mayLeadTo reports whether the call of block b may have come to the outermost activation that is
// known.
func (p *placer) mayLeadTo(r *route.Routine, b int) bool {
	if !r.Blocks[b].CallReturns() {
		return false
	}
	switch r.Kinds[b] {
	case plan.External, plan.Unknown:
		return true
	case plan.Known:
		caller := p.stack.frames[0].caller
		if r.Callees[b].Plan.MayLeaveCallOpen() || caller == 0 {
			return true
		}
		switch caller.Origin() {
		case wire.Inside, wire.Handler, wire.ReturnsToImage:
			return true
		}
	}
	return false
}

// metInHandlerOf reports whether the thread was met in a signal handler that had interrupted the
// routine: an activation of it may stand at any instruction.
func (p *placer) metInHandlerOf(r *route.Routine) bool {
	caller := p.stack.frames[0].caller
	if caller.Origin() != wire.Handler {
		return false
	}
	_, _, ok := r.Locate(caller.Address())
	return ok
}

// resume begins an activation in its middle: nothing is known of its callers.
func (p *placer) resume(a activation, block int) {
	p.calls.toExternalCall(a.cfa)
	p.out.sink.Mark(ops.Resume, 1)
	p.stack.push(&frame{activation: a, fromExternal: true})
	p.out.resumeAt(p.stack.top(), block)
}

// resumeCaller begins a caller in its middle: it is known to stand at its call. It reports false if
// its frame is not known.
func (p *placer) resumeCaller(c route.Call, cfa uint64, depth int) bool {
	p.calls.toExternalCall(cfa)
	p.out.sink.Mark(ops.Resume, 1)
	if depth < 0 {
		return false
	}
	f := standingAt(c, cfa+uint64(depth))
	f.fromExternal = true
	p.stack.push(f)
	return true
}

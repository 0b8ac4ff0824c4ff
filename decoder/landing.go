package decoder

import (
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// landsAt reports whether frame i comes to a site, at a landing pad or behind a call that may
// return twice, by an exception or by the second return.
func (p *placer) landsAt(i int, s *plan.Site) bool {
	r := p.stack.frames[i].r
	if !r.Pads[s.Block] && p.returnsFirst(i, s.Block) || p.flows(i, s.Block) {
		return false
	}
	return !s.First || p.mayLand(i, s.Block)
}

// returnsFirst reports whether frame i comes to block b by the first return of the call that it
// follows: it stands at that call, or was interrupted right behind it by what has come to its end.
func (p *placer) returnsFirst(i, b int) bool {
	f := &p.stack.frames[i]
	if f.pos.Resumed && f.pos.Next[0] == b {
		return p.stack.haveReturned(i)
	}
	at := f.pos.Block
	return at != route.Exit && f.r.Blocks[at].CallReturns() && f.r.Blocks[at].Succ[0] == b
}

// flows reports whether frame i comes to block b by ordinary flow, not by an exception or a second
// return: plans leave no probe-free route by which it could be either.
func (p *placer) flows(i, b int) bool {
	f := &p.stack.frames[i]
	if !f.pos.Free().Reaches(b) || !f.pos.Passes(f.called) || p.throws(i, b) {
		return false
	}
	way := f.pos.Free().Route(b)
	return !slices.ContainsFunc(way[:len(way)-1], func(n int) bool { return f.r.MayThrow(n, b) })
}

// mayLand reports whether frame i may come to block b by an exception or a second return: out of
// the call where it stands, or one that it may have come to without an event.
func (p *placer) mayLand(i, b int) bool {
	f := &p.stack.frames[i]
	if p.throws(i, b) {
		return true
	}
	may := func(n route.Node) bool { return f.r.Site(n.Block) == nil && f.r.MayThrow(n.Block, b) }
	return f.pos.Passes(f.called) && slices.ContainsFunc(f.pos.Free().Nodes, may)
}

// throws reports whether what the call where frame i stands has entered may have come to block to
// otherwise than by its return. Traced routines do so only out of calls that they have not left.
func (p *placer) throws(i, to int) bool {
	f := &p.stack.frames[i]
	b := f.pos.Block
	if b == route.Exit || !f.r.LandsAt(b, to) {
		return false
	}
	if f.r.Kinds[b] == plan.Known {
		return f.called && (f.r.Callees[b].Plan.MayLeaveCallOpen() || !p.stack.haveReturned(i))
	}
	return f.r.MayThrow(b, to)
}

// land brings frame i to a landing pad: the call where it stands threw, or one that it came to
// without an event.
func (p *placer) land(i, pad int) {
	f := &p.stack.frames[i]
	here := f.pos.Block != route.Exit && f.r.LandsAt(f.pos.Block, pad)
	switch {
	case p.signals.leaveByHandler(i):
	case here && i < len(p.stack.frames)-1:
		if f.r.Plan.Faulty && p.stack.haveReturned(i) {
			// Or they returned, and what came then faulted.
			p.out.sink.Mark(ops.Cut, 0)
		}
		p.calls.unwindAbove(i)
	case here:
		p.out.makeCall(f)
		// Or it returned, and what came then faulted.
		if f.r.Plan.Faulty && f.r.Blocks[f.pos.Block].End != cfg.NoReturn {
			p.out.sink.Mark(ops.Cut, 0)
		}
	default:
		p.comeToThrowingCall(i, pad)
	}
	p.out.beginPath(&p.stack.frames[i], pad, ops.StartPad)
}

// comeToThrowingCall lets frame i come to the call that can throw to the pad.
func (p *placer) comeToThrowingCall(i, pad int) {
	f := &p.stack.frames[i]
	faulty := f.r.Plan.Faulty
	call, n := p.throwingCall(f, pad)
	if n > 1 {
		p.d.ambiguity("more than one call may have thrown",
			"routine", f.r.Plan.Name, "pad", f.r.Blocks[pad].Lo)
	}
	if n > 0 && !faulty {
		m := f.pos.To(call, f.called)
		p.calls.returnAbove(i)
		f = &p.stack.frames[i]
		p.out.apply(f, m)
		f.standAt(call)
		p.out.makeCall(f)
		return
	}
	if !faulty {
		p.d.anomaly("no call that throws to the landing pad", "routine", f.r.Plan.Name,
			"from", f.address(), "pad", f.r.Blocks[pad].Lo)
	}
	p.calls.unwindAbove(i)
	f = &p.stack.frames[i]
	if p.out.cutPath(f); f.called && faulty {
		p.out.sink.Mark(ops.Cut, 0)
	}
}

// throwingCall finds the first call without a probe that can throw to a pad, of those that the
// activation may have come to without an event, and how many there are: two standing for more.
func (p *placer) throwingCall(f *frame, pad int) (block, n int) {
	if !f.pos.Passes(f.called) {
		return 0, 0
	}
	for _, node := range f.pos.Free().Nodes {
		if f.r.Site(node.Block) != nil || !f.r.MayThrow(node.Block, pad) {
			continue
		}
		if n++; n > 1 {
			break
		}
		block = node.Block
	}
	return block, n
}

// returnAgain brings frame i to the continuation of a call that returns a second time (longjmp).
func (p *placer) returnAgain(i, b int) {
	switch {
	case p.signals.leaveByHandler(i):
	case i == len(p.stack.frames)-1:
		p.calls.comeToLeavingCall(&p.stack.frames[i], false)
	case p.calls.unwindAbove(i):
		p.calls.comeToLeavingCall(&p.stack.frames[i], true)
	}
	p.out.beginPath(&p.stack.frames[i], b, ops.StartCall)
}

// returnFromUnknown brings frame i to block b where no probe-free route leads there: a call of
// unknown code, which may be setjmp, has returned a second time. It reports false unless b lies
// behind just one such call.
func (p *placer) returnFromUnknown(i, b int) bool {
	r := p.stack.frames[i].r
	behind, n := route.Exit, 0
	for c := range r.Blocks {
		if r.Kinds[c] != plan.Unknown || r.Blocks[c].End != cfg.CallInd {
			continue
		}
		next := r.Blocks[c].Succ[0]
		if next == b || r.Site(next) == nil && r.At(next, 0).To(b, false) != nil {
			behind, n = next, n+1
		}
	}
	if n != 1 {
		return false
	}
	p.returnAgain(i, behind)
	if f := &p.stack.frames[i]; behind != b {
		f.pos = r.At(behind, 0)
		p.out.apply(f, f.pos.To(b, false))
	}
	return true
}

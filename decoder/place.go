package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// A placer finds out which activation an event belongs to, and brings the stack there.
type placer struct {
	d        *Decoder
	stack    *stack
	out      *emitter
	calls    *calls
	signals  *signals
	evidence *evidence
	sent     sentChain
}

// A sentChain is the chain of callers that the kernel remembers, with the registers that came with
// it, and whose it is: the kernel does not send it again while it is the same.
type sentChain struct {
	callers   []wire.Event
	registers []uint64
	of        activation
}

// place finds out which activation an event belongs to, ends what must have ended, and walks to the
// event's block. Afterwards the innermost frame is the activation, with its path up to the block.
func (p *placer) place(a activation, s *plan.Site) {
	chain := p.chain(a, s)
	if len(chain) > 0 && chain[0].Resync() {
		p.resync(a, s.Block, chain)
		return
	}
	i := p.stack.find(a, chain)
	if i < 0 && p.calls.revive(a, s.Block, s.First, chain) {
		i = p.stack.find(a, chain)
	}
	if i >= 0 && p.stack.frames[i].inferred && len(chain) > 0 {
		p.confirm(&p.stack.frames[i], chain[0])
	}
	if i >= 0 && p.goOn(i, s) || i < 0 && p.reappear(a, s.Block) {
		return
	}
	if !s.First || len(chain) == 0 {
		p.resume(a, s.Block)
		return
	}
	p.enter(a, chain)
	f := p.stack.top()
	m := f.pos.To(s.Block, false)
	if m == nil {
		p.d.anomaly("no route from the entry to a first event",
			"routine", a.r.Plan.Name, "block", a.r.Blocks[s.Block].Lo)
		p.out.sink.Mark(ops.Resume, 1)
		p.out.resumeAt(f, s.Block)
		return
	}
	p.out.apply(f, m)
}

// confirm takes the return address of an inferred activation, with its first event: a signal
// handler may have been meant.
func (p *placer) confirm(f *frame, caller wire.Event) {
	f.caller, f.inferred = caller, false
	if f.handler = isHandler(caller); f.handler {
		p.out.sink.Mark(ops.Cut, 0)
	}
}

// chain is the chain of callers that came with the event, or the one that the kernel remembers and
// so did not send again.
func (p *placer) chain(a activation, s *plan.Site) []wire.Event {
	e, sent := p.evidence, &p.sent
	switch {
	case len(e.callers) > 0 && e.callers[0].Resync():
		sent.of = activation{}
	case len(e.callers) > 0:
		sent.callers = append(sent.callers[:0], e.callers...)
		sent.registers = append(sent.registers[:0], e.registers...)
		sent.of = a
	case s.First && sent.of == a:
		e.registers = append(e.registers[:0], sent.registers...)
		return sent.callers
	}
	return e.callers
}

// goOn lets frame i go on to a site. It reports false if the event must come from a new activation
// in the same place.
func (p *placer) goOn(i int, s *plan.Site) bool {
	f := &p.stack.frames[i]
	if f.atFault && f.pos.Block == s.Block { // the instruction runs anew
		p.calls.returnAbove(i)
		return true
	}
	if (f.r.Pads[s.Block] || f.r.Again[s.Block]) && p.landsAt(i, s) {
		if f.r.Pads[s.Block] {
			p.land(i, s.Block)
		} else {
			p.returnAgain(i, s.Block)
		}
		return true
	}
	m := f.pos.To(s.Block, f.called)
	switch {
	case m != nil && (!s.First || p.stack.calleesReturn(i)):
		p.calls.returnAbove(i)
		p.out.apply(&p.stack.frames[i], m)
	case s.First:
		return false
	case p.returnFromUnknown(i, s.Block):
	default:
		p.d.anomaly("no route to an event",
			"routine", f.r.Plan.Name, "from", f.address(), "to", f.r.Blocks[s.Block].Lo)
		p.calls.returnAbove(i)
		p.out.cutPath(&p.stack.frames[i])
		p.out.sink.Mark(ops.Resume, 1)
		p.out.resumeAt(&p.stack.frames[i], s.Block)
	}
	return true
}

// enter begins an activation whose chain of callers is known, and those of its callers that have
// had no event yet.
func (p *placer) enter(a activation, chain []wire.Event) {
	caller := chain[0]
	var call route.Call
	known := caller.Origin() == wire.Inside
	if known {
		call, known = p.d.program.CallTo(caller.Address())
	}
	if !known {
		p.enterFromExternal(a, caller)
		return
	}
	depth := call.Routine.Blocks[call.Block].Depth
	i := p.findCaller(call, a.cfa, depth, chain[1:])
	if i < 0 {
		// Then it may have called anew.
		around := call.Routine.At(call.Block, 0).To(call.Block, true) != nil
		if p.calls.tailJumpFromExternal(a, caller, !around) {
			return
		}
	}
	if i < 0 && depth >= 0 {
		at := activation{call.Routine, a.cfa + uint64(depth)}
		if p.reappearAtCall(call, at.cfa, a.r) {
			p.calls.enter(&frame{activation: a, caller: caller})
			return
		}
		if p.reappear(at, call.Block) {
			i = len(p.stack.frames) - 1
		} else if len(chain) > 1 {
			p.enter(at, chain[1:])
			i = len(p.stack.frames) - 1
		}
	}
	if i < 0 {
		known := p.resumeCaller(call, a.cfa, depth)
		p.calls.enter(&frame{activation: a, caller: caller, fromExternal: !known})
		return
	}
	f := &p.stack.frames[i]
	if f.called && f.pos.Block == call.Block {
		if p.calls.tailJump(i+1, a, caller, true) {
			return
		}
		if f.inExternal || f.r.CallsExternal(call.Block) { // what it called jumped on
			p.calls.returnAbove(i)
			p.calls.enter(&frame{activation: a, caller: caller})
			return
		}
	}
	p.callFrom(i, call, a, chain)
	p.calls.enter(&frame{activation: a, caller: caller})
}

// callFrom lets frame i come to the call by which an activation is entered, or another activation
// of the caller in the same place.
func (p *placer) callFrom(i int, call route.Call, a activation, chain []wire.Event) {
	if p.calls.callFrom(i, call.Block, a.r) {
		return
	}
	if depth := call.Routine.Blocks[call.Block].Depth; depth >= 0 && len(chain) > 1 {
		p.enter(activation{call.Routine, a.cfa + uint64(depth)}, chain[1:]) // the caller runs anew
		i = len(p.stack.frames) - 1
		if p.calls.callFrom(i, call.Block, a.r) {
			return
		}
	}
	f := &p.stack.frames[i]
	p.d.anomaly("no route to a call", "routine", call.Routine.Plan.Name, "from", f.address(),
		"to", call.Routine.Blocks[call.Block].Lo, "of", a.r.Plan.Name)
	p.calls.returnAbove(i)
	f = &p.stack.frames[i]
	p.out.cutPath(f)
	p.out.sink.Mark(ops.Resume, 1)
	f.pos, f.called, f.atFault = call.Routine.At(call.Block, 0), true, false
}

// findCaller finds the frame that has made a call which led to cfa: see stack.findCaller. It may be
// on a stack that the thread comes back to.
func (p *placer) findCaller(c route.Call, cfa uint64, depth int, chain []wire.Event) int {
	i := p.stack.findCaller(c, cfa, depth, chain)
	if i >= 0 || depth < 0 {
		return i
	}
	if !p.calls.revive(activation{c.Routine, cfa + uint64(depth)}, c.Block, false, chain) {
		return -1
	}
	return p.stack.findCaller(c, cfa, depth, chain)
}

// enterFromExternal begins an activation that external code called: a callback, a handler, a
// thread's or coroutine's first.
func (p *placer) enterFromExternal(a activation, caller wire.Event) {
	f := &frame{activation: a, caller: caller, fromExternal: true, handler: isHandler(caller)}
	if p.calls.tailJumpFromExternal(a, caller, true) {
		return
	}
	if f.handler {
		p.signals.handle(f)
		return
	}
	if p.calls.toExternalCall(a.cfa) {
		p.calls.leaveOverwritten(a.cfa)
	}
	p.calls.enter(f)
}

package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/arch"
	"wpptrace/loader/plan"
)

// A Thread decodes the events of one thread.
type Thread struct {
	d        *Decoder
	out      emitter
	stack    stack
	calls    calls
	signals  signals
	placer   placer
	evidence evidence
	last     lastHit
	ended    bool
	faulted  bool // by an instruction of a traced routine
	fault    Fault
}

// A Fault is an instruction that has faulted, without a handler for that.
type Fault struct {
	Routine int    // ID
	Addr    uint64 // link-time
}

// An evidence is what came before an event and belongs to it.
type evidence struct {
	callers   []wire.Event // the chain of callers
	registers []uint64     // what they held: wire.Registers
	captured  captured
}

// A captured is the value that a site has captured, if it has.
type captured struct {
	value uint64
	is    bool
}

// A lastHit is the last event of a hit, which repeats repeat.
type lastHit struct {
	event    wire.Event
	captured captured
}

// allRegisters are the registers that came before the event; nil: they did not.
func (e *evidence) allRegisters() *arch.Registers { return route.RegistersOf(e.registers) }

func (e *evidence) reset() {
	e.callers, e.registers, e.captured.is = e.callers[:0], e.registers[:0], false
}

// Thread returns a decoder for a thread whose operations go to sink; first: the process's first,
// which calls its main function.
func (d *Decoder) Thread(sink ops.Sink, first bool) *Thread {
	t := &Thread{d: d}
	t.out = emitter{d: d, sink: sink}
	if first {
		t.stack.main = d.program.Main
	}
	t.calls = calls{d: d, stack: &t.stack, out: &t.out}
	t.signals = signals{d: d, stack: &t.stack, out: &t.out, calls: &t.calls, evidence: &t.evidence}
	t.placer = placer{
		d: d, stack: &t.stack, out: &t.out, calls: &t.calls, signals: &t.signals,
		evidence: &t.evidence,
	}
	return t
}

// Hits are the hits of a site that an event stands for: none where an event only goes with another.
type Hits struct {
	Count   uint64
	Site    int  // index in plan.Plan.Sites, or beyond if the event is amiss
	Stepped bool // the kernel single-steps the site's instruction: each hit costs two traps
}

// Take decodes the next event and returns the hits that it stands for: one for a hit, several where
// the kernel has counted repeats. Cost: a look-up, where the route has been walked before.
func (t *Thread) Take(e wire.Event) Hits {
	switch e.Kind() {
	case wire.Hit:
		t.last = lastHit{e, t.evidence.captured}
		t.hit(e)
		t.evidence.reset()
		t.signals.forgetFaults()
		return t.hits(1)
	case wire.Caller:
		t.evidence.callers = append(t.evidence.callers, e)
	case wire.Register:
		t.evidence.registers = append(t.evidence.registers, e.Value())
	case wire.Captured:
		t.evidence.captured = captured{e.Value(), true}
	case wire.Repeat:
		for range e.Value() {
			t.evidence.captured = t.last.captured
			t.hit(t.last.event)
		}
		t.evidence.captured.is = false
		return t.hits(e.Value())
	case wire.Interrupt:
		t.signals.noteInterrupt(e)
		t.evidence.registers = t.evidence.registers[:0]
	case wire.Fault:
		t.signals.noteFault(e)
	case wire.End:
		t.ended = true
		t.noteFault(e)
		t.signals.end(e)
	default:
		t.d.anomaly("event of no known kind", "event", e)
	}
	return Hits{}
}

// hits are n hits of the site that was hit last.
func (t *Thread) hits(n uint64) Hits {
	site, sites := t.last.event.Site(), t.d.sites
	return Hits{Count: n, Site: site, Stepped: site < len(sites) && sites[site].Stepped}
}

// Ended reports whether the thread's end has been taken: no event follows it.
func (t *Thread) Ended() bool { return t.ended }

// Fault is the instruction of a traced routine by which the thread has ended; ok is false if it has
// not ended so.
func (t *Thread) Fault() (f Fault, ok bool) { return t.fault, t.faulted }

func (t *Thread) noteFault(end wire.Event) {
	if end.Origin() != wire.Inside || !end.Faulted() || !t.d.program.Traces(end.Address()) {
		return
	}
	r := t.d.program.RoutineAt(end.Address())
	t.fault, t.faulted = Fault{r.ID, end.Address() - r.Plan.Offset()}, true
}

// Gap says that events are missing here: n hits. Every position is forgotten.
func (t *Thread) Gap(n uint64) {
	t.calls.loseAll()
	t.out.sink.Mark(ops.Gap, n)
	t.stack.hasRun, t.stack.away = true, nil
	t.placer.sent = sentChain{}
	t.signals.pending = nil
	t.signals.forgetFaults()
	t.evidence.reset()
}

// Close ends a stream that tracing was taken off from: what runs on is not known.
func (t *Thread) Close() {
	if !t.ended {
		t.calls.cutAll()
	}
}

// hit takes the event of a hit.
func (t *Thread) hit(e wire.Event) {
	if e.Site() >= len(t.d.sites) {
		t.d.anomaly("event of a site that is not in the plan", "event", e)
		return
	}
	s := &t.d.sites[e.Site()]
	t.out.here = route.RegisterState{}
	if c := s.Capture; t.evidence.captured.is && c != nil && c.Kind == plan.LoopRegisters {
		t.out.here = route.RegisterState{Value: t.evidence.captured.value, Captured: &c.Registers}
	}
	a := activation{t.d.program.Routines[s.Routine], e.CFA()}
	if t.signals.pending == nil {
		t.come(a, s, e.Outcome())
		return
	}
	switch lands := a.r.Pads[s.Block] || a.r.Again[s.Block]; {
	case t.signals.runsAgain(a, s):
		t.arrive(t.stack.top(), s, e.Outcome())
	case lands: // there is more to it: leaveByHandler
		t.come(a, s, e.Outcome())
	default:
		t.signals.markLeft(a)
		t.come(a, s, e.Outcome())
	}
	t.signals.pending = nil
}

// come lets an activation come to a site: the innermost by its route, others by what is known of
// the stack.
func (t *Thread) come(a activation, s *plan.Site, outcome int) {
	b := s.Block
	if n := len(t.stack.frames); n > 0 && len(t.evidence.callers) == 0 {
		f := &t.stack.frames[n-1]
		if f.activation == a && !f.atFault && !a.r.Pads[b] && !a.r.Again[b] {
			if m := f.pos.To(b, f.called); m != nil {
				t.out.apply(f, m)
				t.arrive(f, s, outcome)
				return
			}
		}
	}
	t.placer.place(a, s)
	t.stack.hasRun = true
	t.arrive(t.stack.top(), s, outcome)
}

// arrive sets the position of the activation that has just come to a site.
func (t *Thread) arrive(f *frame, s *plan.Site, outcome int) {
	f.called, f.atFault, f.regs = false, false, t.out.here
	if c := s.Capture; t.evidence.captured.is && c != nil && c.Kind != plan.LoopRegisters {
		if at := f.r.AtCaptured(s, outcome, t.evidence.captured.value); at != nil {
			f.pos = at
			return
		}
		t.d.anomaly("event with a value that its site cannot capture",
			"routine", f.r.Plan.Name, "value", t.evidence.captured.value)
	}
	f.pos = f.r.At(s.Block, outcome)
}

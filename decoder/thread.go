package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/loader/plan"
)

// A Thread decodes the words of one thread.
type Thread struct {
	d      *Decoder
	sink   ops.Sink
	frames []frame // innermost last
	away   [][]frame
	from   []wire.Event // the chain of callers that came before the next witness
	regs   []uint64     // the registers that came with it: wire.Registers
	value  uint64       // the case that came before it
	here   held         // what is known of registers where the word comes from
	rounds []uint64     // of the loops on the way that is walked
	told   bool
	last   wire.Event // the last witness, and its case
	lastV  uint64
	lastT  bool
	chain  []wire.Event // the chain that the kernel remembers, the registers that came with it, and whose it is
	saved  []uint64
	owner  activation
	known  uint64 // the highest CFA up to which all activations are known since the thread was met; 0: all, from its beginning
	taken  *spot  // where a handler has come since the last witness, if one has; nothing is known of it but that
	fault  uint64 // the stack pointer of what is not observed, where that has faulted since, the last time
	faults int    // how often it has
	heard  bool   // it has said something, or lost it
	ended  bool
	events uint64

	mainRan bool // it does not call the main function any more
}

// An activation is identified by its routine and its canonical frame address.
type activation struct {
	r   *routine
	cfa uint64
}

// A frame is an activation on the stack.
type frame struct {
	activation
	st      *state
	from    wire.Event // its return address; 0: not known
	lowest  uint64     // the lowest CFA from the outermost frame up to this one
	number  uint64     // of the running path, so far
	start   origin     // where it began
	trail   []int      // its blocks, if it began with a resume
	skip    int        // instructions of the first of them that do not belong to it
	held    held       // what is known of registers where it stands
	called  bool       // the call where it stands has been made
	open    bool       // and what that entered has jumped to code that is not observed
	stopped bool       // the instruction of its last word has not run: it was interrupted there
	root    bool       // code that is not observed called it
	gone    bool       // another activation is in its place, or in that of one of its callers
	handler bool       // as a signal handler
	over    int        // of a handler: how many frames it has interrupted, of which the innermost may have ended before
	alive   int        // and how many it has certainly interrupted
	adrift  bool       // of a handler: it has interrupted observed code, and it is not known what led there
	back    bool       // it was called back, as the registers tell that a handler came with before its first word
}

// Thread returns a decoder for a thread whose operations go to sink; first: the process's first, which
// calls its main function.
func (d *Decoder) Thread(sink ops.Sink, first bool) *Thread {
	return &Thread{d: d, sink: sink, mainRan: !first}
}

// Hits are the hits of a site that an event stands for: none where an event only goes with another.
type Hits struct {
	Count   uint64
	Site    int  // index in plan.Plan.Sites; not checked against the plan, for the event may be amiss
	Stepped bool // the kernel single-steps the site's instruction: each hit costs two traps
}

// Take decodes the next event and returns the hits that it stands for: one for a hit, several where
// the kernel has counted repeats. Cost: a look-up, where the way has been walked before.
func (t *Thread) Take(e wire.Event) Hits {
	t.events++
	switch e.Kind() {
	case wire.Hit:
		t.last, t.lastV, t.lastT = e, t.value, t.told
		t.witness(e)
		t.from, t.regs, t.told, t.fault, t.faults = t.from[:0], t.regs[:0], false, 0, 0
		return t.hits(1)
	case wire.Caller:
		t.from = append(t.from, e)
	case wire.Register:
		t.regs = append(t.regs, e.Value())
	case wire.Captured:
		t.value, t.told = e.Value(), true
	case wire.Repeat:
		for range e.Value() {
			t.value, t.told = t.lastV, t.lastT
			t.witness(t.last)
		}
		t.told = false
		return t.hits(e.Value())
	case wire.Interrupt: // one in what is not observed, or where a handler begins, says nothing of the one before
		where := spot{pc: e.Address(), regs: registersOf(t.regs), faulted: e.Faulted(), hit: e.Faulted()}
		if t.d.observes(where.pc) && !t.d.beginsHandler(where) {
			t.taken = &where
		}
		t.regs = t.regs[:0]
	case wire.Fault:
		t.fault = e.Address()
		t.faults++
	case wire.End:
		t.end(e)
	default:
		t.anomaly("word of no known kind", "word", e)
	}
	return Hits{}
}

// hits are n hits of the site that was hit last.
func (t *Thread) hits(n uint64) Hits {
	site := t.last.Site()
	known := site < len(t.d.plan.Sites)
	return Hits{Count: n, Site: site, Stepped: known && t.d.plan.Sites[site].Stepped}
}

// Ended reports whether the thread's end has been taken: no event follows it.
func (t *Thread) Ended() bool { return t.ended }

// Events is the number of events taken.
func (t *Thread) Events() uint64 { return t.events }

// Gap says that words are missing here: n hits. Every position is forgotten.
func (t *Thread) Gap(n uint64) {
	t.abandon()
	t.sink.Mark(ops.Gap, n)
	t.heard = true
	t.away, t.chain, t.owner, t.taken = nil, nil, activation{}, nil
	t.from, t.regs, t.told, t.fault, t.faults = t.from[:0], t.regs[:0], false, 0, 0
}

// abandon cuts the running paths off and leaves all activations: how they ended is not known.
func (t *Thread) abandon() {
	open := t.cutAll()
	if open == 0 {
		return
	}
	t.sink.Mark(ops.Unwind, uint64(open))
	for range open {
		t.sink.LeaveRoutine()
	}
}

// Close ends a stream that tracing was taken off from: what runs on is not known.
func (t *Thread) Close() {
	if !t.ended {
		t.cutAll()
	}
}

// cutAll cuts the running path off, and those that handlers have interrupted, whose activations it
// leaves the inner ones for. All positions are forgotten; it returns how many activations have not
// been left. What handlers have interrupted that is not known is marked, before all that.
func (t *Thread) cutAll() (open int) {
	t.markAdrift(0)
	outermost := len(t.frames) - 1
	for i := range t.frames {
		if f := &t.frames[i]; !f.called && f.st.block != exit {
			outermost = i
			break
		}
	}
	for i := len(t.frames) - 1; i >= outermost && i >= 0; i-- {
		t.cut(&t.frames[i])
		if i > outermost {
			t.sink.Mark(ops.Unwind, 1)
			t.sink.LeaveRoutine()
		}
	}
	t.frames = t.frames[:0]
	return outermost + 1
}

func (t *Thread) anomaly(what string, args ...any) {
	t.d.anomalies++
	t.d.log.Warn(what, args...)
}

func (t *Thread) witness(w wire.Event) {
	if w.Site() >= len(t.d.plan.Sites) {
		t.anomaly("word of a site that is not in the plan", "word", w)
		return
	}
	s := &t.d.plan.Sites[w.Site()]
	t.here = held{}
	if c := s.Capture; t.told && c != nil && c.Kind == plan.LoopRegisters {
		t.here = held{carried: t.value, reading: &c.Registers}
	}
	r := t.d.routines[s.Routine]
	a := activation{r, w.CFA()}
	if t.taken != nil {
		defer func() { t.taken = nil }()
		if t.runsAgain(a, s) {
			t.arrive(t.top(), s, w.Outcome())
			return
		}
		if !r.pad[s.Block] && !r.again[s.Block] { // else there is more to it: leaveInterrupted
			t.markLeft(a)
		}
	}
	if n := len(t.frames); n > 0 && len(t.from) == 0 {
		if f := &t.frames[n-1]; f.activation == a && !f.stopped && !r.pad[s.Block] && !r.again[s.Block] {
			if m := f.st.to(s.Block, f.called); m != nil {
				t.apply(f, m)
				t.arrive(f, s, w.Outcome())
				return
			}
		}
	}
	t.place(a, s)
	t.heard = true
	t.arrive(&t.frames[len(t.frames)-1], s, w.Outcome())
}

// arrive sets the position of the activation that has just come to a site.
func (t *Thread) arrive(f *frame, s *plan.Site, outcome int) {
	f.called, f.stopped, f.held = false, false, t.here
	if c := s.Capture; t.told && c != nil && c.Kind != plan.LoopRegisters {
		if st := f.r.inCase(s, outcome, t.value); st != nil {
			f.st = st
			return
		}
		t.anomaly("word with a case that its switch has not, or a value that its place cannot hold", "routine", f.r.Name, "value", t.value)
	}
	f.st = f.r.at(s.Block, outcome)
}

// apply emits what a move completes.
func (t *Thread) apply(f *frame, m *move) {
	f.stopped = false
	if m.laps != nil {
		m = t.run(f, m)
	}
	if f.start.kind == ops.StartResume {
		f.trail = append(f.trail, m.trail...)
	}
	for i := range m.acts {
		switch a := &m.acts[i]; a.kind {
		case actEnter:
			t.sink.EnterRoutine(a.routine.ID)
		case actLeave:
			t.sink.LeaveRoutine()
		case actPath:
			if i == m.first {
				t.complete(f, a.number)
			} else {
				t.paths(a, a.times)
			}
		case actRounds:
			t.paths(a, t.rounds[a.lap]-2)
		}
	}
	if m.fresh {
		f.number, f.start, f.trail, f.skip = m.add, m.start, nil, 0
	} else {
		f.number += m.add
	}
}

// paths emits the path of an act so many times.
func (t *Thread) paths(a *act, times uint64) {
	for times > 0 {
		n := min(times, ops.MostTimes)
		t.sink.NewPath(a.routine.ID, a.number, n)
		times -= n
	}
}

// complete emits the running path as it ends with this addend.
func (t *Thread) complete(f *frame, add uint64) {
	switch {
	case f.start.kind != ops.StartResume:
		t.sink.NewPath(f.r.ID, f.number+add, 1)
	case len(f.trail) > 0:
		t.sink.NewPath(f.r.ID, t.d.partial(f.r, Partial{Start: ops.StartResume, End: f.r.endAfter(f.trail), Blocks: f.trail, Skip: f.skip}), 1)
	}
}

// enter begins an activation at its entry.
func (t *Thread) enter(f frame) *frame {
	t.sink.EnterRoutine(f.r.ID)
	f.st = f.r.atEntry()
	return t.push(f)
}

// find returns the innermost frame of an activation whose chain of callers is this, or -1. It stops
// where all that is left lies above.
func (t *Thread) find(a activation, chain []wire.Event) int {
	for i := len(t.frames) - 1; i >= 0 && t.frames[i].lowest <= a.cfa; i-- {
		if t.frames[i].activation == a && !t.frames[i].gone && t.calledThrough(i, chain) {
			return i
		}
	}
	return -1
}

// calledThrough reports whether frame i and its callers have these return addresses.
func (t *Thread) calledThrough(i int, chain []wire.Event) bool {
	for k, w := range chain {
		if i-k < 0 || t.frames[i-k].from != w && t.frames[i-k].from != 0 {
			return false
		}
		if t.frames[i-k].root {
			break
		}
	}
	return true
}

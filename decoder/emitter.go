package decoder

import (
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// An emitter moves one activation at a time along its routes, and passes the operations that this
// completes to a sink. It knows no stack.
type emitter struct {
	d    *Decoder
	sink ops.Sink
	// here is what is known of registers where the event comes from that is being decoded.
	here   route.RegisterState
	rounds []uint64 // of the loops on the route that is walked
}

// apply moves an activation along a route, and emits what that completes.
func (e *emitter) apply(f *frame, m *route.Transition) {
	f.atFault = false
	if m.HasLoops() {
		m = e.count(f, m)
	}
	if f.path.start == ops.StartResume {
		f.path.trail = append(f.path.trail, m.Trail...)
	}
	for i := range m.Emissions {
		switch a := &m.Emissions[i]; a.Kind {
		case route.EmitEnter:
			e.sink.EnterRoutine(a.Routine.ID, ops.Traced)
		case route.EmitLeave:
			e.sink.LeaveRoutine()
		case route.EmitPath:
			if i == m.First {
				e.complete(f, a.Number)
			} else {
				e.paths(a, a.Times)
			}
		case route.EmitRounds:
			e.paths(a, e.rounds[a.Loop]-2)
		}
	}
	if m.Fresh {
		f.path.number, f.path.start, f.path.trail, f.path.skip = m.Add, m.Start, nil, 0
	} else {
		f.path.number += m.Add
	}
}

// count finds the rounds of the loops on a route, and the transition that they make of it.
func (e *emitter) count(f *frame, m *route.Transition) *route.Transition {
	counted, rounds, ok := m.Counted(e.rounds[:0], f.regs, e.here)
	e.rounds = rounds
	if !ok {
		e.d.anomaly("rounds of a loop that cannot be",
			"routine", f.r.Plan.Name, "from", f.address())
	}
	return counted
}

// paths emits a path so many times.
func (e *emitter) paths(a *route.Emission, times uint64) {
	for times > 0 {
		n := min(times, ops.MostTimes)
		e.sink.NewPath(a.Routine.ID, a.Number, n)
		times -= n
	}
}

// complete emits the running path as it ends with this addend.
func (e *emitter) complete(f *frame, add uint64) {
	if f.path.start != ops.StartResume {
		e.sink.NewPath(f.r.ID, f.path.number+add, 1)
		return
	}
	if trail := f.path.trail; len(trail) > 0 {
		p := Partial{Start: ops.StartResume, Blocks: trail, Skip: int(f.path.skip)}
		p.End = f.r.EndAfter(trail[len(trail)-1])
		e.sink.NewPath(f.r.ID, e.d.partial(f.r, p), 1)
	}
}

// emit passes on what routines without events have done.
func (e *emitter) emit(run []route.Emission) {
	e.apply(&frame{}, &route.Transition{Emissions: run, First: route.NoEmission, Fresh: true})
}

// goToCall lets an activation come to the call of block c without an event, and make it.
func (e *emitter) goToCall(f *frame, c int) {
	if f.pos.Block != c || f.called {
		e.apply(f, f.pos.To(c, f.called))
		f.standAt(c)
	}
	e.makeCall(f)
}

// makeCall ends the running path of an activation that stands at a call.
func (e *emitter) makeCall(f *frame) {
	if f.called {
		return
	}
	f.called, f.inExternal, f.atFault = true, false, false
	e.complete(f, f.r.FinishAtCall(f.pos.Block))
	f.path.start, f.path.trail, f.path.skip = ops.StartCall, nil, 0
}

// jumpOut ends the running path of an activation that has jumped out of where it stands. That it is
// left is emitted when it is known where to.
func (e *emitter) jumpOut(f *frame) {
	e.apply(f, f.pos.Finish())
	f.path.start, f.path.trail = ops.StartResume, nil
}

// pausePath ends the running path of an activation behind its last event, unless that ends it
// anyway, with what it calls or jumps to.
func (e *emitter) pausePath(f *frame) {
	b := f.pos.Block
	if b == route.Exit || f.called || f.path.isCutOff() {
		return
	}
	if f.atExternalCall() {
		e.makeCall(f)
		return
	}
	s, last := f.r.Site(b), len(f.r.Blocks[b].Insns)-1
	if s == nil || s.Insn == last && f.r.EndsPath(b) {
		return
	}
	begun := 0 // instructions of the block that ran before the path began there
	if len(f.path.trail) == 1 {
		begun = int(f.path.skip)
	}
	e.cutPath(f)
	if s.Insn < last {
		f.path.trail, f.path.skip = []int{b}, int32(max(s.Insn+1, begun))
	}
}

// cutPath emits what is known of a path whose tail is not. It reports whether it has marked that.
func (e *emitter) cutPath(f *frame) (marked bool) {
	b := f.pos.Block
	if b == route.Exit || f.called || f.atFault || f.path.isCutOff() {
		return false
	}
	insns, done := 0, false
	if s := f.r.Site(b); s != nil {
		done = s.Insn == len(f.r.Blocks[b].Insns)-1
		if !done {
			insns = s.Insn + 1
		}
	}
	end, next := f.r.Blocks[b].End, f.pos.Next
	switch {
	case done && f.r.Kinds[b] != plan.NoCallee && end != cfg.Jcc && end != cfg.Tail:
		e.makeCall(f)
		return false
	case done && len(next) == 1 && f.pos.PathEndsBefore(next[0]):
		e.apply(f, f.pos.Step(next[0]))
		e.sink.Mark(ops.Cut, 0) // the path after it may have begun
		f.path.start, f.path.trail = ops.StartResume, nil
		return true
	}
	return e.emitPrefix(f, f.blocks(), insns)
}

// emitPrefix emits the running path as it was cut off: these blocks, insns instructions of the last
// (0: all). The rest, if there is one, resumes. It reports false if there is nothing to be emitted.
func (e *emitter) emitPrefix(f *frame, blocks []int, insns int) (emitted bool) {
	n := len(blocks)
	emitted = n > 1 || n == 1 && (insns == 0 || insns > int(f.path.skip))
	if emitted {
		p := Partial{Start: f.path.start, End: ops.EndCut, Blocks: blocks, Insns: insns}
		p.Skip = int(f.path.skip)
		e.sink.NewPath(f.r.ID, e.d.partial(f.r, p), 1)
		e.sink.Mark(ops.Cut, 0)
	}
	f.path = cutOff()
	return emitted
}

// stopAt ends the running path of an activation before the instruction where it was interrupted:
// instruction k of block b, to which a probe-free route leads.
func (e *emitter) stopAt(f *frame, stop *step) {
	b, k := stop.block, stop.insn
	if f.pos.StandsAt(b, k, f.called, stop.hit) {
		e.emitPrefix(f, before(f.blocks(), k), k)
		f.path.trail, f.path.skip = []int{b}, int32(k)
		if s := f.r.Site(b); s != nil {
			f.atFault = stop.fault && k == s.Insn
		}
		return
	}
	from := f.pos
	e.apply(f, from.ToInsn(b, k, f.called))
	f.standAt(b)
	e.emitPrefix(f, before(f.blocks(), k), k)
	f.pos, f.path.skip, f.regs = from.Before(b, k), int32(k), e.here
}

// before lists the blocks that have run, in part at least, before instruction k of the last.
func before(blocks []int, k int) []int {
	if k == 0 {
		return blocks[:len(blocks)-1]
	}
	return blocks
}

// beginPath begins a path at block b.
func (e *emitter) beginPath(f *frame, b int, kind ops.Start) {
	number, ok := f.r.Numbers.Begin(b, paths.Start(kind))
	if !ok {
		e.d.anomaly("no path begins here", "routine", f.r.Plan.Name, "block", f.r.Blocks[b].Lo)
		e.sink.Mark(ops.Resume, 1)
		e.resumeAt(f, b)
		return
	}
	f.path, f.called = runningPath{number: number, start: kind}, false
}

// resumeAt begins a path in its middle, at block b.
func (e *emitter) resumeAt(f *frame, b int) {
	f.standAt(b)
	f.path = runningPath{start: ops.StartResume, trail: []int{b}}
}

// externalCallAhead finds the call of code that is not known that the activation may have come to
// without an event. The plan puts at most one between two events.
func (e *emitter) externalCallAhead(f *frame) (block int, ok bool) {
	if !f.pos.Passes(f.called) {
		return 0, false
	}
	ahead := f.pos.Free().External
	if len(ahead) == 0 {
		return 0, false
	}
	if len(ahead) > 1 {
		e.d.ambiguity("a callback may come from more than one call",
			"routine", f.r.Plan.Name, "from", f.address())
	}
	return ahead[0], true
}

// comeToExternalCall lets an activation come to the call of external code where it stands and that
// it has not made, or which lies ahead. It reports false if there is none.
func (e *emitter) comeToExternalCall(f *frame) bool {
	if !f.called && f.atExternalCall() {
		e.makeCall(f)
		return true
	}
	c, ok := e.externalCallAhead(f)
	if ok {
		e.goToCall(f, c)
	}
	return ok
}

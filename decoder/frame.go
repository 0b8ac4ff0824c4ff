package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
)

// An activation is identified by its routine and its canonical frame address.
type activation struct {
	r   *route.Routine
	cfa uint64
}

// A frame is an activation on the stack.
type frame struct {
	activation
	pos    *route.Position
	caller wire.Event // its return address; 0: not known
	path   runningPath
	regs   route.RegisterState // what is known of registers where it stands
	lowest uint64              // the lowest CFA from the outermost frame up to this one
	// interrupted is what it has interrupted, if it is a handler.
	interrupted interruption

	called       bool // the call where it stands has been made
	fromExternal bool // external code called it
	handler      bool // as a signal handler
	// inferred: it is known by the registers at a signal alone, and has had no event yet. Its
	// caller is external code, or it is a handler.
	inferred bool
	// inExternal: what the call where it stands entered has jumped to external code.
	inExternal bool
	// atFault: the instruction of its last event has not run: it was interrupted there.
	atFault bool
	// overwritten: another activation is in its place, or in that of one of its callers.
	overwritten bool
}

// A runningPath is the path that an activation is on.
type runningPath struct {
	number uint64 // so far
	trail  []int  // its blocks, if it began with a resume
	skip   int32  // instructions of the first of them that do not belong to it
	start  ops.Start
}

// An interruption is what a signal handler has interrupted, as a count of the frames below it.
type interruption struct {
	most    int32 // the innermost of them may have ended before
	least   int32 // certainly interrupted
	unknown bool  // traced routines were interrupted, and it is not known what led there
}

// behindCall is the path of an activation that stands at its call: none runs.
func behindCall() runningPath { return runningPath{start: ops.StartCall} }

// cutOff is the path of an activation whose next blocks belong to none that is known.
func cutOff() runningPath { return runningPath{start: ops.StartResume} }

// isCutOff reports whether no path is running: the last was cut off, or has ended with a jump out.
func (p *runningPath) isCutOff() bool { return p.start == ops.StartResume && len(p.trail) == 0 }

// standAt lets the activation stand behind block b, without an event.
func (f *frame) standAt(b int) { f.pos, f.called = f.r.At(b, 0), false }

// address is that of the block where the activation stands, for the log.
func (f *frame) address() uint64 {
	if f.pos.Block == route.Exit {
		return f.r.Plan.Addr
	}
	return f.r.Blocks[f.pos.Block].Lo
}

// blocks lists those of the running path up to the activation's position.
func (f *frame) blocks() []int {
	if f.path.start == ops.StartResume {
		return f.path.trail
	}
	// The ways on from here whose addends are 0 complete the number.
	p, err := f.r.Numbers.Decode(f.path.number)
	if err != nil {
		return []int{f.pos.Block}
	}
	for i, b := range p.Blocks {
		if b == f.pos.Block {
			return p.Blocks[:i+1]
		}
	}
	return p.Blocks
}

// atExternalCall reports whether the activation stands at a call of external code, or of what has
// jumped there.
func (f *frame) atExternalCall() bool {
	return f.called && f.inExternal || f.pos.AtExternalCall()
}

// externalCFA is the CFA of what the activation has called, if that has jumped to external code,
// and is known; else 0.
func (f *frame) externalCFA() uint64 {
	if !f.inExternal {
		return 0
	}
	return f.calleeCFA()
}

// calleeCFA is the CFA of what the call where the activation stands has entered; 0: none has been
// made, or it is not known.
func (f *frame) calleeCFA() uint64 {
	if !f.called || f.pos.Block == route.Exit {
		return 0
	}
	depth := f.r.Blocks[f.pos.Block].Depth
	if depth < 0 {
		return 0
	}
	return f.cfa - uint64(depth)
}

// mayHaveThrown reports whether the activation may have been left from within a call of external
// code, where it stands or that it has come to without an event.
func (f *frame) mayHaveThrown() bool {
	return f.called && f.inExternal || f.pos.MayThrow(f.called)
}

// ranIntoExternal reports whether an activation that has ended came to external code by that: to
// what called it, or by a jump.
func (f *frame) ranIntoExternal() bool {
	o, _ := f.pos.ReturnsBy(f.called)
	return f.fromExternal && !f.handler || f.r.JumpsOutside(o.Block)
}

// mayReturnTo reports whether the activation is at this place and has this return address, as far
// as is known.
func (f *frame) mayReturnTo(cfa uint64, caller wire.Event) bool {
	return f.cfa == cfa && (f.caller == caller || f.caller == 0)
}

// jumpedTo is the frame of an activation that the activation has left to by a tail jump.
func (f *frame) jumpedTo(a activation, caller wire.Event) *frame {
	return &frame{
		activation: a, caller: caller, fromExternal: f.fromExternal,
		handler: f.handler, interrupted: f.interrupted,
	}
}

// isHandler reports whether what returns there is a signal handler.
func isHandler(caller wire.Event) bool {
	switch caller.Origin() {
	case wire.Handler, wire.HandlerOutside, wire.ReturnsToImage:
		return true
	}
	return false
}

package slice

import (
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// frames know which jumps decided that an instruction is executed: those that it comes behind,
// while control has not come to where both their ways meet again, which is the nearest block that
// post-dominates theirs. An instruction depends on the last of them, or else on the call of its
// routine. (Xin and Zhang 2007, "Efficient Online Detection of Dynamic Control Dependence".)
type frames struct {
	flows func(routine int) Flow
	of    map[int]*routine
	stack []frame
	last  step
	begun bool

	// the stack pointer before the call from which control has just come back, if it has
	stackPointer def
	cameBack     bool
}

// A step is what is kept of an instance.
type step struct {
	routine, block, insn int
	op                   machine.Op
	next                 uint64 // address behind it
}

type routine struct {
	meet     []int  // of each block: where its ways meet again
	branches []bool // it has several
}

// A frame is an activation.
type frame struct {
	routine int
	returns uint64 // where its call goes on; 0: it has none
	call    def
	pointer def      // the stack pointer before the call
	open    []branch // the last one is what the next instruction depends on
}

// A branch is a jump whose ways have not met.
type branch struct {
	by    def
	until int // block
}

func newFrames(flows func(routine int) Flow) *frames {
	return &frames{flows: flows, of: map[int]*routine{}}
}

func (f *frames) routine(number int) *routine {
	r := f.of[number]
	if r == nil {
		r = &routine{}
		if flow := f.flows(number); flow != nil {
			r.meet = flow.postDominators()
			for _, to := range flow {
				r.branches = append(r.branches, len(to) > 1)
			}
		}
		f.of[number] = r
	}
	return r
}

// control finds what an instance depends on by control.
func (b *Builder) control(e *wet.Executed, instance int) {
	f := b.frames
	f.cameBack = false
	arrives := f.arrive(e, def(instance), b.beforeCall)
	if f.cameBack {
		b.general[machine.RSP] = f.stackPointer
	}
	top := &f.stack[len(f.stack)-1]
	for n := len(top.open); arrives && n > 0 && top.open[n-1].until == e.Block; n-- {
		top.open = top.open[:n-1]
	}
	by := top.call
	if n := len(top.open); n > 0 {
		by = top.open[n-1].by
	}
	if by > 0 {
		b.found = append(b.found, edge(by-1)<<1|controls)
	}
	f.last = step{e.Routine, e.Block, e.Insn, e.Code.Op, e.Addr + uint64(e.Code.Len)}
	f.begun = true
}

// arrive brings the frames to an instance, before which there were so many; pointer is the stack
// pointer before the last of them, if that was a call. It reports whether the instance begins a
// block.
func (f *frames) arrive(e *wet.Executed, before, pointer def) (begins bool) {
	if !f.begun {
		f.enter(e, frame{})
		return true
	}
	last := &f.last
	returned := last.op == machine.Call && last.next == e.Addr
	switch {
	case e.External && returned:
		f.cameBack, f.stackPointer = true, pointer
		return e.Insn == 0
	case last.op == machine.Call:
		f.enter(e, frame{call: before, returns: last.next, pointer: pointer})
		return true
	case (e.External || last.op == machine.Return) && f.back(e):
		return e.Insn == 0
	case last.op == machine.Return, e.External && last.next != e.Addr:
		f.enter(e, frame{})
		return true
	case e.Routine != last.routine: // by a jump
		top := &f.stack[len(f.stack)-1]
		top.routine, top.call, top.open = e.Routine, before, top.open[:0]
		return true
	case e.Block == last.block && e.Insn == last.insn+1:
		return false
	}
	f.leaves(before)
	return true
}

func (f *frames) enter(e *wet.Executed, x frame) {
	x.routine = e.Routine
	f.stack = append(f.stack, x)
}

// back goes back to the frame whose call returns to an instance, if there is one.
func (f *frames) back(e *wet.Executed) bool {
	for i := len(f.stack) - 1; i > 0; i-- {
		if f.stack[i].returns == e.Addr && f.stack[i-1].routine == e.Routine {
			f.cameBack, f.stackPointer = true, f.stack[i].pointer
			f.stack = f.stack[:i]
			return true
		}
	}
	return false
}

// leaves opens the branch that the last instance of a block was, if it was one: there were so many
// instances up to it. One that meets where the last open one does takes its place: so rounds of a
// loop do not pile up.
func (f *frames) leaves(before def) {
	top := &f.stack[len(f.stack)-1]
	r := f.routine(top.routine)
	block := f.last.block
	if block >= len(r.branches) || !r.branches[block] {
		return
	}
	x := branch{by: before, until: r.meet[block]}
	if n := len(top.open); n > 0 && top.open[n-1].until == x.until {
		top.open[n-1] = x
	} else {
		top.open = append(top.open, x)
	}
}

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

	back *frame // of the call from which control has just come back; nil: it has not
	done frame  // that is back
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
	kept    kept     // and the registers that it is to leave as they are
	open    []branch // the last one is what the next instruction depends on
}

// kept has who made the registers that calls leave as they are, and what they held.
type kept [len(calleeSaved)]struct {
	by    def
	value wet.Register
}

// calleeSaved are the registers that calls leave as they are, but for the stack pointer.
var calleeSaved = [...]int{machine.RBX, machine.RBP, 12, 13, 14, 15}

func (b *Builder) kept() (k kept) {
	for i, r := range calleeSaved {
		k[i].by, k[i].value = b.general[r], b.values[r]
	}
	return k
}

// restore has registers be those of before a call that has returned, which it has only kept
// elsewhere meanwhile: the stack pointer, and those that hold again what they did.
func (b *Builder) restore(f *frame) {
	b.general[machine.RSP] = f.pointer
	for i, r := range calleeSaved {
		is, was := b.values[r], f.kept[i].value
		if is.Known != machine.Unknown && was.Known != machine.Unknown && is.Value == was.Value {
			b.general[r] = f.kept[i].by
		}
	}
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
	f.back = nil
	arrives := f.arrive(e, def(instance), b)
	if f.back != nil {
		b.restore(f.back)
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

// arrive brings the frames to an instance, before which there were so many; b has who made the
// registers. It reports whether the instance begins a block.
func (f *frames) arrive(e *wet.Executed, before def, b *Builder) (begins bool) {
	if !f.begun {
		f.enter(e, frame{})
		return true
	}
	last := &f.last
	returned := last.op == machine.Call && last.next == e.Addr
	switch {
	case e.External && returned:
		f.done = frame{pointer: b.beforeCall}
		f.back = &f.done
		return e.Insn == 0
	case last.op == machine.Call:
		f.enter(e, frame{call: before, returns: last.next, pointer: b.beforeCall, kept: b.kept()})
		return true
	case (e.External || last.op == machine.Return) && f.goBack(e):
		return e.Insn == 0
	case last.op == machine.Return, e.External && last.next != e.Addr:
		f.drop()
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

// drop drops the frame of a routine that has returned to code that is not traced, or has gone on
// there, where that is all that its frame was for: else each call back would leave one. That of the
// first call back stays, which says where the code that is not traced returns to.
func (f *frames) drop() {
	switch f.last.op {
	case machine.Return, machine.Jump, machine.JumpIf:
		if n := len(f.stack) - 1; f.stack[n].returns == 0 {
			f.stack = f.stack[:n]
		}
	}
}

// goBack goes back to the frame whose call returns to an instance, if there is one.
func (f *frames) goBack(e *wet.Executed) bool {
	for i := len(f.stack) - 1; i > 0; i-- {
		if f.stack[i].returns == e.Addr && f.stack[i-1].routine == e.Routine {
			f.done = f.stack[i]
			f.back = &f.done
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

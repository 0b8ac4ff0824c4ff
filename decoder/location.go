package decoder

import (
	"wpptrace/decoder/route"
	"wpptrace/loader/arch"
)

// A location is where a thread was interrupted: before the instruction at pc, or in external code.
type location struct {
	pc      uint64
	outside bool
	// returns is the return address of the external code, where its stack pointer points to one of
	// an image; 0: it is not known.
	returns uint64
	regs    *arch.Registers // what they held there; nil: it is not known
	faulted bool            // the instruction has faulted
	hit     bool            // if it is probed, it has been hit
}

// isAnywhere reports whether nothing more is known than that it is in external code.
func (l *location) isAnywhere() bool { return l.outside && l.returns == 0 }

// stackPointer is what the stack pointer held there; ok is false if it is not known.
func (l *location) stackPointer() (sp uint64, ok bool) {
	if l.regs == nil {
		return 0, false
	}
	return l.regs[arch.Native.StackPointer()], true
}

// cfaAt is the CFA of the activation that a location is in, by its registers; 0 if they do not say.
func (d *Decoder) cfaAt(l location) uint64 {
	sp, ok := l.stackPointer()
	if !ok {
		return 0
	}
	if l.returns != 0 {
		return arch.Native.CFAOfReturnAt(sp)
	}
	r := d.program.RoutineAt(l.pc)
	if l.outside || r == nil {
		return 0
	}
	rule := r.Plan.CFA(l.pc - r.Plan.Offset())
	base, ok := arch.Native.FrameRegister(rule.Reg)
	if !ok {
		return 0
	}
	return l.regs[base] + uint64(int64(rule.Off))
}

// beginsHandler reports whether a location is where a signal's handler begins, none of which has
// run: of signals that are delivered at once, the next one's handler interrupts it there.
func (d *Decoder) beginsHandler(l location) bool {
	r := d.program.RoutineAt(l.pc)
	if r == nil || l.pc != r.Address() || l.faulted || l.regs == nil {
		return false
	}
	return arch.Native.BeginsHandler(l.regs)
}

// routineAt is the traced routine that a location is in, or that it returns to; nil if there is
// none.
func (d *Decoder) routineAt(l location) *route.Routine {
	if l.returns == 0 {
		return d.program.RoutineAt(l.pc)
	}
	c, _ := d.program.CallTo(l.returns)
	return c.Routine
}

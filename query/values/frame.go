package values

import (
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp/variables"
	"wpptrace/internal/location"
)

// A Frame says of a routine's variables which of them nobody knows of but instructions that name
// their place in the frame: no other code writes them, unless it writes beyond what it was given.
// It belongs to one goroutine.
type Frame struct {
	// leads has the addresses of the frame that instructions make, by register and distance
	leads []lead
	// anywhere: an instruction makes one of which the distance is not known
	anywhere bool
}

// A lead is an instruction that makes an address of the frame.
type lead struct {
	at   uint64 // link-time
	base int    // register, by DWARF's number
	n    int64  // what is added to it
}

// FrameOf is that of a routine that has instructions in a snapshot.
func FrameOf(code *wet.Code, routine int) *Frame {
	f := &Frame{}
	r := code.Routine(routine)
	if r == nil {
		f.anywhere = true
		return f
	}
	points := false // RBP is of the frame
	each := func(do func(at uint64, in *machine.Insn)) {
		for i := range r.Blocks {
			at := r.Blocks[i].Addr
			for j := range r.Blocks[i].Insns {
				in := &r.Blocks[i].Insns[j]
				do(at, in)
				at += uint64(in.Len)
			}
		}
	}
	each(func(_ uint64, in *machine.Insn) {
		points = points || isRegister(&in.Dst, machine.RBP) &&
			(isRegister(&in.Src, machine.RSP) || in.Op == machine.Lea && in.Src.Reg == machine.RSP)
	})
	each(func(at uint64, in *machine.Insn) { f.note(at, in, points) })
	return f
}

func isRegister(o *machine.Operand, n uint8) bool {
	return o.Class == machine.General && o.Reg == n
}

// note notes what an instruction makes of RSP, and of RBP if that is of the frame.
func (f *Frame) note(at uint64, in *machine.Insn, points bool) {
	ofFrame := func(register uint8) bool {
		return register == machine.RSP || points && register == machine.RBP
	}
	isOf := func(o *machine.Operand) bool { return o.Class == machine.General && ofFrame(o.Reg) }
	switch in.Op {
	case machine.Lea:
		if isRegister(&in.Dst, machine.RSP) {
			return
		}
		switch o := &in.Src; {
		case ofFrame(o.Index):
			f.anywhere = true
		case ofFrame(o.Reg) && o.Index == machine.Zero:
			base := location.RSP
			if o.Reg == machine.RBP {
				base = location.RBP
			}
			f.leads = append(f.leads, lead{at, base, o.Disp})
		case ofFrame(o.Reg):
			f.anywhere = true
		}
	case machine.Cmp, machine.Test:
	case machine.Push:
		f.anywhere = f.anywhere || isRegister(&in.Src, machine.RSP)
	default:
		toFrame := isRegister(&in.Dst, machine.RSP) || isRegister(&in.Dst, machine.RBP)
		f.anywhere = f.anywhere || !toFrame && (isOf(&in.Src) || isOf(&in.Third))
	}
}

// Hides reports whether a part of a variable is in the frame wherever it is in memory, and no
// instruction of the routine makes its address.
func (f *Frame) Hides(a *Asked) bool {
	size := a.sizeOf(a.Variable.Type)
	if f.anywhere || size < 1 || len(a.offsets) > 1 {
		return false
	}
	for i := range a.Variable.Places {
		if !inFrame(&a.Variable.Places[i]) {
			return false
		}
	}
	for _, l := range f.leads {
		if l.mayLead(a.Variable.Places, size) {
			return false
		}
	}
	return true
}

// mayLead reports whether an instruction makes the address of a variable of some bytes, or where
// that is when the instruction runs is not known.
func (l *lead) mayLead(places []variables.Place, size int64) bool {
	isKnown := false
	for i := range places {
		p := &places[i]
		op, _, _ := location.Next(p.Expression)
		same := op.Register == l.base
		if same && l.n >= op.N && l.n-op.N < size {
			return true
		}
		here := p.Lo <= l.at && l.at < p.Hi
		isKnown = isKnown || same && (here || l.base == location.RBP)
	}
	return !isKnown
}

// inFrame reports whether a place is so far from RSP or RBP.
func inFrame(p *variables.Place) bool {
	if len(p.Expression) == 0 {
		return false
	}
	op, rest, err := location.Next(p.Expression)
	return err == nil && len(rest) == 0 && op.Code == location.Breg0 &&
		(op.Register == location.RSP || op.Register == location.RBP)
}

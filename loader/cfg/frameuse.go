package cfg

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// Keeps reports whether block b surely leaves a place alone: a register, or one in the frame. It
// may call nothing, and for the latter store nowhere but in other places of the frame.
func (r *Routine) Keeps(b int, place x86.Operand) bool {
	return !slices.ContainsFunc(r.Blocks[b].Insns, func(q Insn) bool {
		e := r.effects(&q)
		return !absint.Keeps(&e, place)
	})
}

// HasPlace reports whether a place is a register but rsp, or in the frame, below the return
// address, as seen from the instruction at pc. What is too far below the stack pointer is the
// kernel's, for signals.
func (r *Routine) HasPlace(place x86.Operand, pc uint64) bool {
	const redZone = 128
	if !place.Mem {
		return place.Reg != x86.RSP
	}
	if place.Base == x86.RSP && place.Disp < -redZone {
		return false
	}
	cfa := r.CFA(pc)
	return (cfa.Reg == x86.DwarfRSP && place.Base == x86.RSP || cfa.Reg == x86.DwarfRBP &&
		place.Base == x86.RBP) && place.Disp+int64(place.Size) <= int64(cfa.Off)-8
}

// hidesFrame reports whether the routine takes no address in its frame.
func (r *Routine) hidesFrame() bool { return HidesFrame(r.Blocks, r.CFA, r.Code) }

// HidesFrame reports whether blocks take no address in their frame: rsp, and rbp where it is the
// frame pointer, are used for memory operands only, and to make the frame and to undo it.
func HidesFrame(blocks []Block, cfa func(addr uint64) image.CFA, code func(q *Insn) []byte) bool {
	pointer := false
	for b := range blocks {
		reg := cfa(blocks[b].Lo).Reg
		if reg == image.Slot {
			return false
		}
		pointer = pointer || reg == x86.DwarfRBP
	}
	for b := range blocks {
		for i := range blocks[b].Insns {
			q := &blocks[b].Insns[i]
			e := q.Effects(code(q), q.End())
			// it is not the frame pointer yet
			saves := e.Operation == x86.Push && e.Src.Reg == x86.RBP &&
				cfa(q.Addr).Reg == x86.DwarfRSP
			named := e.Named()
			if (named.Has(x86.RSP) || pointer && named.Has(x86.RBP) && !saves) && !makesFrame(&e,
				pointer) {
				return false
			}
		}
	}
	return true
}

// makesFrame reports whether an instruction sets rsp or rbp as prologues and epilogues do.
func makesFrame(e *x86.Effects, pointer bool) bool {
	switch e.Operation {
	case x86.Mov:
		isPair := e.Dst.Reg == x86.RBP && e.Src.Reg == x86.RSP ||
			e.Dst.Reg == x86.RSP && e.Src.Reg == x86.RBP
		return pointer && isPair
	case x86.Lea:
		return e.Dst.Reg == x86.RSP
	case x86.Add, x86.Sub:
		return e.HasImm && e.Dst.Reg == x86.RSP
	}
	return false
}

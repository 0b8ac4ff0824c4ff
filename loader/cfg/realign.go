package cfg

import (
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// Compilers that align a routine's stack to more than the calling convention does keep its
// canonical frame address in a register, and that in the new frame:
//
//	lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10); push %rbp; mov %rsp,%rbp; push %r10
//	...
//	mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret
//
// Such a routine's frame is understood when each of its instructions turns an unwind row that is
// true into one that is.

// inSlot says whether some rule finds the routine's frame address in a slot.
func (f *frame) inSlot() bool {
	return slices.ContainsFunc(f.d.pieces, func(i int) bool {
		return slices.ContainsFunc(f.pieces[i].Rows, func(row image.Row) bool { return row.CFA.Reg == image.Slot })
	})
}

// followsSlot says whether the rows of a routine whose frame address is in a slot are true from the
// entry on.
func (f *frame) followsSlot() bool {
	for _, i := range append([]int{f.d.entry}, f.d.others...) {
		if f.cfaOf(int(f.blockAt[i])) != entryCFA {
			return false
		}
	}
	below := f.framePointers()
	for b := range f.d.blocks {
		if !f.rowsFollow(b, below[b]) {
			return false
		}
	}
	return true
}

// cfaOf returns the rule before block b.
func (f *frame) cfaOf(b int) image.CFA {
	return cfaAt(f.pieces[f.pieceOf[f.d.first[b]]].Rows, f.d.blocks[b].Lo)
}

// rowsFollow says whether the rows within block b, and those of the blocks behind it, follow from
// the one before it. below is rbp - rsp there.
func (f *frame) rowsFollow(b, below int) bool {
	bl := &f.d.blocks[b]
	w := f.walk(b)
	w.next()
	for {
		from, op, at := w.row.CFA, newOperation(w.insn(), w.code()), below
		below = belowAfter(&op, below)
		if !w.next() {
			return f.leavesWell(b, from) && !slices.ContainsFunc(bl.Succ, func(to int) bool { return to >= 0 && !turns(&op, from, f.cfaOf(to), at) }) &&
				!slices.ContainsFunc(bl.Pads, func(to int) bool { return f.cfaOf(to) != from || isBase(from) })
		}
		if !turns(&op, from, w.row.CFA, at) {
			return false
		}
	}
}

// leavesWell says whether block b, whose last rule is cfa, stays in the routine, or leaves it with
// nothing but the return address on the stack.
func (f *frame) leavesWell(b int, cfa image.CFA) bool {
	switch bl := &f.d.blocks[b]; bl.End {
	case Ret, Tail, TailInd:
		return cfa == entryCFA
	case Jcc:
		return bl.Succ[0] >= 0 && bl.Succ[1] >= 0 || cfa == entryCFA
	}
	return true
}

// isBase says whether the rule is that of a register that a routine keeps while it aligns its
// stack. The numbers of these are the hardware's.
func isBase(cfa image.CFA) bool { return cfa.Reg >= 8 && cfa.Reg <= 15 }

// turns says whether rule to holds behind an instruction before which rule from does. below is what
// rbp is above rsp by before it.
func turns(op *operation, from, to image.CFA, below int) bool {
	switch {
	case isBase(from) && from == to:
		return !overwrites(op, from.Reg)
	case from.Reg == image.Slot && from == to:
		return !overwrites(op, rbp) && !op.storesIn(from)
	case from.Reg == dwarfRSP && isBase(to):
		return op.isLea(to.Reg, rsp, int64(from.Off)-int64(to.Off))
	case isBase(from) && to.Reg == dwarfRSP:
		return op.isLea(rsp, from.Reg, int64(from.Off)-int64(to.Off))
	case isBase(from) && to.Reg == image.Slot:
		const push = 0x50
		return from.Off == 0 && (op.isShort(push, from.Reg) && below != depthUnknown && -below-8 == int(to.Off) || op.isMove(store, from.Reg, to))
	case from.Reg == image.Slot && isBase(to):
		const pop = 0x58
		return to.Off == 0 && (op.isShort(pop, to.Reg) && below != depthUnknown && -below == int(from.Off) || op.isMove(load, to.Reg, from))
	}
	return isUsual(from) && isUsual(to)
}

// isUsual says whether the rule is one that the depth accounts for.
func isUsual(cfa image.CFA) bool { return cfa.Reg == dwarfRSP || cfa.Reg == dwarfRBP }

// overwrites says whether the instruction, or what it calls, may change a register that is not rsp.
func overwrites(op *operation, reg int8) bool {
	switch op.Kind {
	case x86.Call, x86.CallInd:
		return callerSaved&bitOf(reg) != 0
	case x86.Jcc, x86.Jmp, x86.JmpInd, x86.Ret, x86.Trap:
		return false
	}
	return writtenRegisters(op)&bitOf(reg) != 0
}

// storesIn says whether the instruction names a place within the slot as what it writes. Vector
// instructions name the beginning of a place.
func (op *operation) storesIn(at image.CFA) bool {
	if !op.rm.Mem || op.rm.Base != rbp || op.rm.Index >= 0 || !writesMemory(op) {
		return false
	}
	size := max(int64(op.rm.Size), 1)
	return op.rm.Disp < int64(at.Off)+8 && op.rm.Disp+size > int64(at.Off)
}

// isLea says whether the instruction sets a register to another one plus an offset.
func (op *operation) isLea(to, from int8, off int64) bool {
	return op.isWide(lea) && op.reg == to && op.rm.Base == from && op.rm.Index < 0 && op.rm.Disp == off
}

// isMove says whether the instruction moves a register to a slot, or back, by its opcode.
func (op *operation) isMove(opcode byte, reg int8, at image.CFA) bool {
	return op.isWide(opcode) && op.reg == reg && op.rm.Mem && op.rm.Base == rbp && op.rm.Index < 0 && op.rm.Disp == int64(at.Off)
}

// isWide says whether the instruction is that of an opcode with operands of 8 bytes.
func (op *operation) isWide(opcode byte) bool { return op.Map == 0 && op.Op == opcode && op.size == 8 }

// isShort says whether the instruction is that of an opcode whose low bits name a register.
func (op *operation) isShort(opcode byte, reg int8) bool {
	return op.Map == 0 && op.Op == opcode|byte(reg&7) && op.Rex&1 == byte(reg>>3) && !op.OpSize
}

// framePointers returns rbp - rsp before each block, depthUnknown where it is not known or not
// always the same.
func (f *frame) framePointers() []int {
	below := make([]int, len(f.d.blocks))
	for b := range below {
		below[b] = depthUnset
	}
	type arrival struct{ block, below int }
	work := []arrival{{int(f.blockAt[f.d.entry]), depthUnknown}}
	for _, i := range f.d.others {
		work = append(work, arrival{int(f.blockAt[i]), depthUnknown})
	}
	for len(work) > 0 {
		a := work[len(work)-1]
		work = work[:len(work)-1]
		switch known := below[a.block]; known {
		case a.below, depthUnknown:
			continue
		case depthUnset:
			below[a.block] = a.below
		default:
			below[a.block] = depthUnknown
		}
		behind := below[a.block]
		for w := f.walk(a.block); w.next(); {
			op := newOperation(w.insn(), w.code())
			behind = belowAfter(&op, behind)
		}
		for _, to := range f.d.blocks[a.block].Succ {
			if to >= 0 {
				work = append(work, arrival{to, behind})
			}
		}
		for _, to := range f.d.blocks[a.block].Pads {
			work = append(work, arrival{to, depthUnknown})
		}
	}
	return below
}

// belowAfter returns rbp - rsp behind an instruction before which it is below.
func belowAfter(op *operation, below int) int {
	toReg, fromRM := int8(-1), int8(-1) // of a move between registers
	if op.isWide(store) && !op.rm.Mem {
		toReg, fromRM = op.rm.Reg, op.reg
	} else if op.isWide(load) && !op.rm.Mem {
		toReg, fromRM = op.reg, op.rm.Reg
	}
	switch {
	case toReg == rbp && fromRM == rsp, toReg == rsp && fromRM == rbp:
		return 0
	case op.isWide(lea) && op.reg == rsp && op.rm.Base == rbp && op.rm.Index < 0:
		return max(int(-op.rm.Disp), depthUnknown)
	case overwrites(op, rbp):
		return depthUnknown
	}
	delta, ok := op.StackDelta(op.code)
	if !ok || below == depthUnknown {
		return depthUnknown
	}
	return max(below-delta, depthUnknown)
}

// realigns says whether the instruction changes rsp as a routine does whose frame address is in a
// register or a slot.
func (f *frame) realigns(w *walk) bool {
	q, code := w.insn(), w.code()
	switch from := w.row.CFA; {
	case !f.realigned:
		return false
	case from.Reg == image.Slot:
		return allocates(q, code)
	case isBase(from):
		op := newOperation(q, code)
		next := cfaAt(f.pieces[f.pieceOf[w.first]].Rows, q.end())
		return next.Reg == dwarfRSP && turns(&op, from, next, depthUnknown) || q.Op != store && q.Op != load && allocates(q, code)
	}
	return false
}

package cfg

import (
	"maps"
	"math"
	"slices"
	"strings"

	"wpptrace/loader/x86"
)

// savesReturn says whether a routine that reads its return address may store it, but in its own frame,
// which is gone when it has returned, or may lend it from there: what it reads is followed through
// registers and places in the frame.
func (f *frame) savesReturn() bool {
	held := make([]uint16, len(f.d.blocks))
	kept := map[int64]bool{}
	for again := true; again; {
		again = false
		for b := range f.d.blocks {
			places := len(kept)
			holds, saves := f.passReturn(b, held[b], kept)
			if saves {
				return true
			}
			again = again || len(kept) > places
			for _, to := range slices.Concat(f.d.blocks[b].Succ, f.d.blocks[b].Pads) {
				if to >= 0 && held[to]|holds != held[to] {
					held[to] |= holds
					again = true
				}
			}
		}
	}
	return len(kept) > 0 && f.lends(kept)
}

// passReturn returns the registers that may hold the return address, or what is computed from it, when block b has run, of
// those that do when it begins; saves: it may store it elsewhere than in its frame. kept has the places there that may
// hold it, by their distance from the CFA; the block adds its own.
func (f *frame) passReturn(b int, holds uint16, kept map[int64]bool) (after uint16, saves bool) {
	for w := f.walk(b); w.next(); {
		op := newOperation(w.insn(), w.code())
		place, isPlace := w.place(op.rm)
		reads := f.readsReturn(&w)
		switch {
		case !reads && !op.uses(holds) && !(isLoad(&op.Inst) && isPlace && kept[place]):
			holds &^= surelyWritten(op.Insn, op.reg, op.rm)
		case op.isTest(), op.Kind != x86.Other, reads && writesOperand(&op.Inst) && !isPop(&op.Inst) && op.Op != exchange: // what else is done to the slot, followReturns sees
		case op.Map == 0 && op.Op == store && isPlace && place < 0:
			kept[place] = true
		case !op.computes():
			return 0, true
		default:
			holds |= writtenRegisters(&op) &^ bitOf(rsp)
		}
	}
	return holds, false
}

// uses says whether an instruction uses the value of one of some registers otherwise than for a memory operand or to
// overwrite it.
func (op *operation) uses(regs uint16) bool {
	if regs == 0 {
		return false
	}
	extends := op.Map == 1 && !op.rm.Mem && regs&bitOf(op.rm.Reg) != 0 // movzx of a register to itself
	written := surelyWritten(op.Insn, op.reg, op.rm)
	for reg := range int8(16) {
		if regs&bitOf(reg) != 0 && op.mentions(reg) && (written&bitOf(reg) == 0 || extends) {
			return true
		}
	}
	isImplicit := op.Map == 0 && (op.Op>>3 == 0x90>>3 || op.Op == 0xaa || op.Op == 0xab || op.Op == 0xa2 || op.Op == 0xa3) // xchg, stos, mov
	return isImplicit && op.Op != 0x90 && regs&bitOf(rax) != 0
}

// isTest says whether an instruction only compares its operands.
func (op *operation) isTest() bool {
	group := op.ModRM >> 3 & 7
	switch o := op.Op; {
	case op.Map != 0:
		return false
	case o < 0x40:
		return o>>3 == aluCmp && o&7 < 6
	case o >= 0x80 && o <= 0x83:
		return group == aluCmp
	}
	return op.Op == 0x84 || op.Op == 0x85 || (op.Op == 0xf6 || op.Op == 0xf7) && group < 2
}

// computes says whether an instruction writes to general registers alone, and to those that writtenRegisters has.
func (op *operation) computes() bool {
	const movsxd, imul, imulByte = 0x63, 0x69, 0x6b
	o := op.Op
	switch {
	case op.Map == 1:
		return o>>4 == 4 || o == 0xb6 || o == 0xb7 || o == 0xbe || o == 0xbf || o == 0xaf // cmov, movzx, movsx, imul
	case op.Map != 0 || isString(&op.Inst) || o&0xf8 == 0x50 || o == 0xa2 || o == 0xa3 || o == 0x8f:
		return false
	}
	return !op.HasModRM || !op.rm.Mem || o < 0x40 && o&2 != 0 || o == load || o == 0x8a || o == lea || o == movsxd || o == imul || o == imulByte
}

// lends says whether a frame that keeps the return address may let it be read there otherwise than by a mov or by a
// callee: one that is passed where the frame is, and no more, is not told what the frame's rsp will be. What takes
// addresses in the frame, and reads memory by registers besides, may read it: by one that a callee gave back, or by
// another part of the frame's. So may who finds an address above the kept place, if he is passed one below.
func (f *frame) lends(kept map[int64]bool) bool {
	top := slices.Max(slices.Collect(maps.Keys(kept)))
	passed, above, reads := false, false, false
	for b := range f.d.blocks {
		for w := f.walk(b); w.next(); {
			if w.touches(kept) {
				return true
			}
			reads = reads || w.readsElsewhere()
			reg, place, takes := w.takesFrame()
			switch {
			case !takes:
			case w.isArgument(reg):
				passed = true
			case place <= top:
				return true
			default:
				above = true
			}
		}
	}
	return passed && above || (passed || above) && reads
}

// readsElsewhere says whether an instruction reads memory by a register that is not known to hold the frame's address.
func (w *walk) readsElsewhere() bool {
	op := newOperation(w.insn(), w.code())
	isFrame := op.rm.Base == rsp || op.rm.Base == rbp && w.row.CFA.Reg == dwarfRBP
	const storeByte, storeByteImmediate, storeImmediate = 0x88, 0xc6, 0xc7
	isStore := op.Map == 0 && (op.Op == store || op.Op == storeByte || op.Op == storeByteImmediate || op.Op == storeImmediate)
	isNop := op.Map == 1 && op.Op >= 0x18 && op.Op <= 0x1f
	if op.Map == 0 && op.Op == lea || isStore || isNop {
		return false
	}
	return isString(&op.Inst) || op.HasModRM && op.rm.Mem && (op.rm.Base >= 0 && !isFrame || op.rm.Index >= 0)
}

// touches says whether an operand other than a mov's is one of the kept places, or overlaps one; of what has an index it
// is not known where it is.
func (w *walk) touches(kept map[int64]bool) bool {
	const widest = 64 // bytes
	q := w.insn()
	_, rm, _ := q.Operands(w.code(), q.end())
	hasIndex := rm.Mem && rm.Index >= 0
	rm.Index = none
	place, ok := w.place(rm)
	if !ok || q.Map == 0 && q.Op == lea {
		return false
	}
	isMov := q.Map == 0 && (q.Op == store || q.Op == load) && !hasIndex
	for at := range kept {
		switch {
		case hasIndex:
			return true
		case isMov && place == at:
		case at-widest < place && place < at+8 && (q.Map != 0 || place+8 > at):
			return true
		}
	}
	return false
}

// takesFrame says whether an instruction takes an address in the frame otherwise than for an operand or for rsp and rbp
// themselves: place, from the CFA, into a register, or where none says so.
func (w *walk) takesFrame() (reg int8, place int64, ok bool) {
	const nowhere = math.MinInt64
	q := w.insn()
	op := newOperation(q, w.code())
	isFrame := func(reg int8) bool { return reg == rsp || reg == rbp && w.row.CFA.Reg == dwarfRBP }
	switch o := q.Op; {
	case q.Map == 0 && o == lea:
		rm := op.rm
		rm.Index = none
		place, ok = w.place(rm)
		return op.reg, place, ok && !w.makesFrame(op.reg)
	case q.Map == 0 && o == store && isFrame(op.reg) && !op.rm.Mem:
		return op.rm.Reg, nowhere, !w.makesFrame(op.rm.Reg)
	case q.Map == 0 && o == load && !op.rm.Mem && isFrame(op.rm.Reg):
		return op.reg, nowhere, !w.makesFrame(op.reg)
	}
	_, moves := q.StackDelta(w.code())
	isAligned := q.Map == 0 && (q.Op == 0x81 || q.Op == 0x83) && op.rm.Reg == rsp
	if moves && !isAligned && op.mentions(rsp) || isFrame(rbp) && op.mentions(rbp) {
		return none, nowhere, true
	}
	return none, 0, false
}

// makesFrame says whether what an instruction writes to a register moves the frame's own: rsp, or rbp where it holds the
// CFA from then on.
func (w *walk) makesFrame(reg int8) bool {
	return reg == rsp || reg == rbp && cfaAt(w.f.pieces[w.f.pieceOf[w.first]].Rows, w.insn().end()).Reg == dwarfRBP
}

// isArgument says whether nothing but the call of a routine of the program, which ends the block, uses what the current
// instruction has written to a register, be it by another register that it is moved to.
func (w *walk) isArgument(reg int8) bool {
	if reg == none {
		return false
	}
	holding := bitOf(reg)
	for i := w.first + w.k + 1; i < w.first+w.n; i++ {
		op := newOperation(&w.f.insns[i], w.f.bytes(i))
		from, to, isMove := op.movesRegister()
		switch {
		case op.Kind == x86.Call:
			return w.f.passes(i, holding)
		case isMove && holding&bitOf(from) != 0:
			holding |= bitOf(to)
		case !op.isPlain() || op.usesAny(holding):
			return false
		}
	}
	return false
}

// passes says whether the call i passes what some registers hold to a routine of the program that does not copy memory,
// and leaves it in none of them.
func (r *recovery) passes(i int, holding uint16) bool {
	to := int(r.target[i])
	if r.routineAt(to) < 0 || holding&^r.clobbers(i) != 0 {
		return false
	}
	name := r.pieces[r.pieceOf[to]].symbol
	return !slices.ContainsFunc([]string{"memcpy", "memmove", "mempcpy", "bcopy"}, func(copies string) bool { return strings.Contains(name, copies) })
}

// movesRegister says whether an instruction moves one whole register to another.
func (op *operation) movesRegister() (from, to int8, ok bool) {
	switch {
	case op.Map != 0 || op.rm.Mem || op.size != 8:
	case op.Op == store:
		return op.reg, op.rm.Reg, true
	case op.Op == load:
		return op.rm.Reg, op.reg, true
	}
	return 0, 0, false
}

// isPlain says whether an instruction is one of those that fill registers and places for a call: what it uses, it names.
func (op *operation) isPlain() bool {
	const storeByte, storeImmediate, movToRegister, xor, movsxd = 0x88, 0xc7, 0xb8, 0x31, 0x63
	o := op.Op
	return op.Map == 0 && (o == lea || o == load || o == store || o == storeByte || o == storeImmediate || o&0xf8 == movToRegister || o == xor || o == movsxd)
}

// usesAny says whether a plain instruction uses one of some registers, or writes to one.
func (op *operation) usesAny(regs uint16) bool {
	for reg := range int8(16) {
		if regs&bitOf(reg) != 0 && (op.mentions(reg) || op.rm.Mem && (op.rm.Base == reg || op.rm.Index == reg)) {
			return true
		}
	}
	return false
}

// surelyWritten returns registers of which an instruction leaves nothing, but for one that it moves to
// itself: those of the usual instructions. What is called may spare any.
func surelyWritten(q *Insn, reg int8, rm x86.Operand) uint16 {
	const movsxd = 0x63
	switch o := q.Op; {
	case q.OpSize:
	case q.Map == 1 && (o == 0xb6 || o == 0xb7 || o == 0xbe || o == 0xbf): // movzx, movsx
		return bitOf(reg)
	case q.Map != 0:
	case (o == load || o == movsxd) && (rm.Mem || rm.Reg != reg), o == lea && rm.Base != reg && rm.Index != reg:
		return bitOf(reg)
	case o == store && !rm.Mem && rm.Reg != reg:
		return bitOf(rm.Reg)
	case o&0xf8 == 0x58, o&0xf8 == 0xb8: // pop, mov of a constant
		return bitOf(int8(q.Op&7 | q.Rex<<3&8))
	}
	return 0
}

// place returns where a place in the frame is that an operand names, from the CFA.
func (w *walk) place(rm x86.Operand) (offset int64, ok bool) {
	switch {
	case !rm.Mem || rm.Index >= 0:
	case rm.Base == rsp && w.depth >= 0:
		return rm.Disp - int64(w.depth), true
	case rm.Base == rbp && w.row.CFA.Reg == dwarfRBP:
		return rm.Disp - int64(w.row.CFA.Off), true
	}
	return 0, false
}

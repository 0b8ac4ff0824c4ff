package cfg

import (
	"maps"
	"math"
	"slices"
	"strings"

	"wpptrace/loader/x86"
)

// savesReturn says whether a routine that reads its return address may store it, but in its own frame,
// which is gone when it has returned: what it reads is followed through registers and places in the
// frame.
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
	return len(kept) > 0 && f.lends(slices.Max(slices.Collect(maps.Keys(kept))), kept)
}

// passReturn returns the registers that may hold the return address when block b has run, of those that
// do when it begins; saves: it may store it elsewhere than in its frame. kept has the places there that
// may hold it, by their distance from the CFA; the block adds its own.
func (f *frame) passReturn(b int, holds uint16, kept map[int64]bool) (after uint16, saves bool) {
	for w := f.walk(b); w.next(); {
		q := w.insn()
		reg, rm, _ := q.Operands(w.code(), q.end())
		row := uint16(1) << (q.Op&7 | q.Rex<<3&8)
		place, isPlace := w.place(rm)
		holds &^= surelyWritten(q, reg, rm)
		switch reads := f.readsReturn(&w); {
		case reads && q.Map != 0:
			return 0, true
		case q.Map != 0:
		case q.Op == load && (reads || isPlace && kept[place] || !rm.Mem && holds>>rm.Reg&1 != 0):
			holds |= bitOf(reg)
		case reads && (isPush(&q.Inst) || q.Op == 0x8f && !isCalleeSaved(rm.Base)):
			return 0, true
		case reads && q.Op&0xf8 == 0x58:
			holds |= row
		case q.Op == store && isPlace && place < 0 && holds>>reg&1 != 0:
			kept[place] = true
		case q.Op&0xf8 == 0x50 && holds&row != 0, q.Op == store && rm.Mem && holds>>reg&1 != 0:
			return 0, true
		case q.Op == store && holds>>reg&1 != 0:
			holds |= bitOf(rm.Reg)
		}
	}
	return holds, false
}

// lends says whether a frame that keeps the return address, at the highest at top, may let it be read there otherwise
// than by a mov or by a callee. A callee that is passed where the frame is, and no more, keeps no address in it to return
// by: none that compilers make works out from a struct in its caller's frame what that frame's rsp will be.
func (f *frame) lends(top int64, kept map[int64]bool) bool {
	passed, known := false, false
	for b := range f.d.blocks {
		for w := f.walk(b); w.next(); {
			if w.touches(kept) {
				return true
			}
			reg, place, takes := w.takesFrame()
			switch isArgument := takes && w.isArgument(reg); {
			case !takes, isArgument && place > top:
			case isArgument:
				passed = true
			case place <= top:
				return true
			default:
				known = true
			}
		}
	}
	return passed && known
}

// touches says whether an operand other than a mov's is one of the kept places, or overlaps one; of what has an index it
// is not known how far it reaches upwards.
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
		case hasIndex && place <= at:
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

package cfg

import (
	"slices"

	"wpptrace/loader/x86"
)

// A returnUse says what a function does with its return address other than to return by it.
type returnUse struct {
	saves bool // puts it where it may be returned by again, as setjmp does
	moves bool // changes it: behind the call there may be data for it, and no code
	drops bool // returns without it, to its caller's caller
	jumps bool // leaves it to what it jumps to through a register or memory
}

// writesOperand says whether the instruction, if it is one of the usual, writes to its memory
// operand.
func writesOperand(q *x86.Inst) bool {
	const cmp, incDec, exchange, store, storeImmediate = 7, 2, 0x87, 0x89, 0xc7
	group := q.ModRM >> 3 & 7
	switch o := q.Op; {
	case q.Map != 0 || !q.HasModRM || q.ModRM>>6 == 3:
		return false
	case o == exchange, o == store, o == storeImmediate, isPop(q):
		return true
	case o < 0x40 && o&7 < 2:
		return o>>3 != cmp
	case o >= 0x80 && o <= 0x83:
		return group != cmp
	case o >= 0xfe:
		return group < incDec
	}
	return false
}

func isLoad(q *x86.Inst) bool { return q.Map == 0 && q.Op == 0x8b }
func isPush(q *x86.Inst) bool { return q.Map == 0 && q.Op == 0xff && q.ModRM>>3&7 == 6 }
func isPop(q *x86.Inst) bool  { return q.Map == 0 && (q.Op&0xf8 == 0x58 || q.Op == 0x8f) }

// isCalleeSaved says whether a register is the same to a caller before and behind a call.
func isCalleeSaved(reg int8) bool {
	const rbx, r12 = 3, 12
	return reg == rbx || reg == rbp || reg >= r12
}

// A returnWalk is a place in a function and what is known there.
type returnWalk struct {
	addr    uint64
	depth   int    // from rsp to the end of the return address
	frame   int    // likewise from rbp; 0: that is not known
	holding uint16 // registers that the return address was popped into
	changed uint16 // of these, those that something else was written to since
}

// returnUse returns what the function at an address does with its return address, and remembers it.
func (r *recovery) returnUse(entry uint64) returnUse {
	if use, ok := r.returnUses.Load(entry); ok {
		return use.(returnUse)
	}
	use := r.followReturns(entry)
	r.returnUses.Store(entry, use)
	return use
}

// followReturns follows a function on all ways from its entry, each as far as rsp can be followed: what
// lies behind that tells nothing. It needs no unwind rows.
func (r *recovery) followReturns(entry uint64) (use returnUse) {
	const most = 1024 // instructions: what does more is no such function
	seen := map[returnWalk]bool{}
	work := []returnWalk{{addr: entry, depth: 8}}
	for len(work) > 0 && len(seen) < most && r.steps.Load() > 0 {
		w := work[len(work)-1]
		work = work[:len(work)-1]
		if !seen[w] {
			seen[w] = true
			r.steps.Add(-1)
			work = append(work, r.followReturn(w, &use)...)
		}
	}
	return use
}

// followReturn notes what one instruction does with the return address, and returns where it leads.
func (r *recovery) followReturn(w returnWalk, use *returnUse) []returnWalk {
	s := r.im.SectionAt(w.addr)
	if s == nil || !s.Exec {
		return nil
	}
	code := s.Data[w.addr-s.Addr:]
	in, ok := x86.Decode(code)
	if !ok {
		return nil
	}
	q := Insn{Addr: w.addr, Inst: in}
	next := w
	next.addr = q.end()
	switch q.Kind {
	case x86.Jmp:
		next.addr = q.target()
		use.saves = use.saves || isReturnsTwiceSymbol(r.imports[next.addr])
		return []returnWalk{next}
	case x86.Jcc, x86.Loop:
		taken := next
		taken.addr = q.target()
		return []returnWalk{next, taken}
	case x86.JmpInd:
		_, rm, _ := q.Operands(code, q.end())
		use.jumps = true
		use.moves = use.moves || !rm.Mem && w.holding>>rm.Reg&1 != 0
		return nil
	case x86.Call:
		if r.endsIn(r.find(q.target()), q.target()) {
			return nil
		}
	case x86.Ret:
		use.drops = use.drops || w.depth < 8
		return nil
	case x86.Trap:
		return nil
	}
	next.note(&q, code, use)
	if !next.moveStack(&q, code) {
		return nil
	}
	return []returnWalk{next}
}

// note notes what an instruction that goes on to the next one does with the return address.
func (w *returnWalk) note(q *Insn, code []byte, use *returnUse) {
	reg, rm, _ := q.Operands(code, q.end())
	inOpcode := uint16(1) << (q.Op&7 | q.Rex&1<<3)
	isSlot := rm.Mem && rm.Index < 0 && (rm.Base == rsp && int(rm.Disp) == w.depth-8 || rm.Base == rbp && w.frame > 0 && int(rm.Disp) == w.frame-8)
	switch {
	case isPop(&q.Inst) && w.depth == 8:
		use.saves = true
		if q.Op != 0x8f {
			w.holding, w.changed = w.holding|inOpcode, w.changed&^inOpcode
		}
		return
	case q.Map == 0 && q.Op&0xf8 == 0x50:
		use.moves = use.moves || w.depth == 0 && w.changed&inOpcode != 0
	case isSlot && q.HasModRM:
		use.saves = true
		use.moves = use.moves || writesOperand(&q.Inst)
	case q.Map == 0 && q.Op == 0x89 && reg == rsp && !rm.Mem && rm.Reg != rbp: // it may be read by that
		use.saves = true
	}
	for held := uint8(0); held < 16; held++ {
		if w.holding>>held&1 != 0 && q.Writes(code, held) {
			w.changed |= 1 << held
		}
	}
}

// moveStack follows rsp and rbp; false: they are lost.
func (w *returnWalk) moveStack(q *Insn, code []byte) bool {
	const leave = 0xc9
	reg, rm, _ := q.Operands(code, q.end())
	if q.Map == 0 && q.Op == 0x89 && reg == rsp && !rm.Mem && rm.Reg == rbp {
		w.frame = w.depth
		return true
	}
	if q.Map == 0 && q.Op == leave && w.frame > 0 {
		w.depth = w.frame - 8
		return true
	}
	delta, ok := q.StackDelta(code)
	w.depth -= delta
	return ok
}

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
	return false
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
		case reads && q.Map != 0, len(kept) > 0 && w.lends(kept):
			return 0, true
		case q.Map != 0:
		case q.Op == 0x8b && (reads || isPlace && kept[place] || !rm.Mem && holds>>rm.Reg&1 != 0):
			holds |= bitOf(reg)
		case reads && (isPush(&q.Inst) || q.Op == 0x8f && !isCalleeSaved(rm.Base)):
			return 0, true
		case reads && q.Op&0xf8 == 0x58:
			holds |= row
		case q.Op == 0x89 && isPlace && place < 0 && holds>>reg&1 != 0:
			kept[place] = true
		case q.Op&0xf8 == 0x50 && holds&row != 0, q.Op == 0x89 && rm.Mem && holds>>reg&1 != 0:
			return 0, true
		case q.Op == 0x89 && holds>>reg&1 != 0:
			holds |= bitOf(rm.Reg)
		}
	}
	return holds, false
}

// lends says whether an instruction lets a kept place be read otherwise than by a mov or by a callee: it takes
// an address in the frame for more than an argument, or has the place, or one beside it, for an operand. A
// callee that is told of a frame by an argument alone is not told where to return to in it.
func (w *walk) lends(kept map[int64]bool) bool {
	const widest = 64 // bytes
	q := w.insn()
	reg, rm, _ := q.Operands(w.code(), q.end())
	place, isPlace := w.place(rm)
	isFrame := reg == rsp && !(rm.Reg == rbp && !rm.Mem) || reg == rbp && w.row.CFA.Reg == dwarfRBP
	switch {
	case q.Map != 0:
	case q.Op == lea && isPlace, q.Op == 0x8b && !rm.Mem && (rm.Reg == rsp && reg != rbp || rm.Reg == rbp && reg != rsp):
		return !w.isArgument(reg)
	case q.Op == 0x89 && isFrame:
		return rm.Mem || !w.isArgument(rm.Reg)
	}
	for at := range kept {
		switch {
		case q.Map == 0 && (q.Op == 0x89 || q.Op == 0x8b) && place == at:
		case isPlace && at-widest < place && place < at+8:
			if q.Map != 0 || place+8 > at {
				return true
			}
		}
	}
	return false
}

// isArgument says whether nothing but the call that ends the block uses what the current instruction has
// written to a register, be it by another register that it is moved to.
func (w *walk) isArgument(reg int8) bool {
	if isCalleeSaved(reg) {
		return false
	}
	holding := bitOf(reg)
	for k := w.k + 1; k < w.n; k++ {
		op := newOperation(&w.f.insns[w.first+k], w.f.bytes(w.first+k))
		if op.Kind == x86.Call || op.Kind == x86.CallInd {
			return true
		}
		isMove := op.Map == 0 && op.Op == 0x89 && !op.rm.Mem && !isCalleeSaved(op.rm.Reg)
		if isMove && holding&bitOf(op.reg) != 0 {
			holding |= bitOf(op.rm.Reg)
			continue
		}
		holding &^= surelyWritten(op.Insn, op.reg, op.rm)
		for held := range int8(16) {
			if holding&bitOf(held) != 0 && (op.mentions(held) || op.rm.Mem && (op.rm.Base == held || op.rm.Index == held)) {
				return false
			}
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
	case (o == 0x8b || o == movsxd) && (rm.Mem || rm.Reg != reg), o == lea && rm.Base != reg && rm.Index != reg:
		return bitOf(reg)
	case o == 0x89 && !rm.Mem && rm.Reg != reg:
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

package cfg

import "wpptrace/loader/x86"

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
	const cmp, incDec, storeImmediate = 7, 2, 0xc7
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

func isLoad(q *x86.Inst) bool { return q.Map == 0 && q.Op == load }
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

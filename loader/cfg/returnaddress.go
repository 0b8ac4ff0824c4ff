package cfg

import "wpptrace/loader/x86"

// A returnUse says what a function does with its return address other than to return by it.
type returnUse struct {
	saves bool // puts it where it may be returned by again, as setjmp does
	moves bool // changes it: what its caller calls it with may lie behind the call, where code would
}

// changesOperand says whether the instruction computes with its memory operand and stores the
// result there.
func changesOperand(q *x86.Inst) bool {
	const cmp, incDec = 7, 2
	group := q.ModRM >> 3 & 7
	switch o := q.Op; {
	case q.Map != 0 || !q.HasModRM || q.ModRM>>6 == 3:
		return false
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

// popped is the set of the register that the instruction takes off the stack; none, where it does
// not.
func popped(q *Insn) uint16 {
	if q.Map != 0 || q.Op&0xf8 != 0x58 {
		return 0
	}
	return 1 << (q.Op&7 | q.Rex&1<<3)
}

// isPreserved says whether a register is the same to a caller before and behind a call. What it
// points to is a runtime's state (OCaml's), and no argument that one could return by again.
func isPreserved(reg int8) bool {
	const rbx, r12 = 3, 12
	return reg == rbx || reg == rbp || reg >= r12
}

// linkUncovered looks at what the code calls and jumps to that no frame description entry covers:
// who may return twice is known by that, and who must not be called from code that is observed.
func (r *recovery) linkUncovered(p *Program) {
	known := map[uint64]returnUse{}
	for i := range r.insns {
		q := &r.insns[i]
		if !isRelative(q.Kind) || r.target[i] >= 0 || r.marks[i]&reached == 0 || r.isStub(q.target()) {
			continue
		}
		to := q.target()
		use, ok := known[to]
		if !ok {
			use = r.uncoveredUse(to)
			known[to] = use
		}
		if use.saves {
			p.twice[to] = true
		}
		if use.moves && q.Kind == x86.Call {
			r.leaveOutCaller(i)
		}
	}
}

// leaveOutCallers leaves out the routines that call one which changes where it returns to.
func (r *recovery) leaveOutCallers() {
	for i, t := range r.target {
		if r.insns[i].Kind != x86.Call || t < 0 || r.marks[i]&reached == 0 {
			continue
		}
		if id := r.routineAt(int(t)); id >= 0 && r.drafts[id].moves {
			r.leaveOutCaller(i)
		}
	}
}

func (r *recovery) leaveOutCaller(i int) {
	r.drafts[r.pieces[r.pieceOf[i]].routine].leave("calls what may return elsewhere at %x", r.insns[i].Addr)
}

// uncoveredUse follows a function that no frame description entry covers from its entry up to where
// it ends, or is not seen through any more; conditional jumps are taken not to be taken.
func (r *recovery) uncoveredUse(addr uint64) (use returnUse) {
	const most = 256   // instructions
	depth := 8         // from rsp to the end of the return address
	var holding uint16 // registers that hold the return address
	for range most {
		s := r.im.SectionAt(addr)
		if s == nil {
			return use
		}
		code := s.Data[addr-s.Addr:]
		in, ok := x86.Decode(code)
		if !ok {
			return use
		}
		q := Insn{Addr: addr, Inst: in}
		addr = q.end()
		switch q.Kind {
		case x86.Jmp:
			addr = q.target()
			use.saves = use.saves || isReturnsTwiceSymbol(r.imports[addr])
			continue
		case x86.JmpInd:
			_, rm, _ := q.Operands(code, q.end())
			use.moves = use.moves || !rm.Mem && holding>>rm.Reg&1 != 0
			return use
		case x86.Ret, x86.Trap:
			return use
		}
		if isPop(&in) && depth == 8 {
			holding, use.saves = holding|popped(&q), true
		} else if q.usesReturn(code, depth) {
			use.saves = use.saves || isLoad(&in) || isPush(&in)
			use.moves = use.moves || changesOperand(&in)
		}
		delta, ok := in.StackDelta(code)
		if !ok {
			return use
		}
		depth -= delta
	}
	return use
}

// usesReturn says whether the operand of the instruction is the return address, which ends so many
// bytes from rsp.
func (q *Insn) usesReturn(code []byte, depth int) bool {
	_, rm, _ := q.Operands(code, q.end())
	return rm.Mem && rm.Base == rsp && rm.Index < 0 && int(rm.Disp) == depth-8
}

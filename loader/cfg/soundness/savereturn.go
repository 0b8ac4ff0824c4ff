package soundness

import (
	"maps"
	"math"
	"slices"
	"strings"

	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/x86"
)

// savesReturn says whether a routine that reads its return address may store it, but in its own
// frame, which is gone when it has returned, or may lend it from there: what it reads is followed
// through registers and places in the frame.
func (f *frame) savesReturn() bool {
	held := make([]x86.Set, len(f.d.Blocks))
	kept := map[int64]bool{}
	for again := true; again; {
		again = false
		for b := range f.d.Blocks {
			places := len(kept)
			holds, saves := f.passReturn(b, held[b], kept)
			if saves {
				return true
			}
			again = again || len(kept) > places
			for _, to := range slices.Concat(f.d.Blocks[b].Succ, f.d.Blocks[b].Pads) {
				if to >= 0 && held[to]|holds != held[to] {
					held[to] |= holds
					again = true
				}
			}
		}
	}
	return len(kept) > 0 && f.lends(kept)
}

// passReturn returns the registers that may hold the return address, or what is computed from it,
// when block b has run, of those that do when it begins; saves: it may store it elsewhere than in
// its frame. kept has the places there that may hold it, by their distance from the CFA; the block
// adds its own.
func (f *frame) passReturn(b int, holds x86.Set, kept map[int64]bool) (after x86.Set, saves bool) {
	for w := f.walk(b); w.next(); {
		e := w.effects()
		place, isPlace := w.place(e.Address())
		reads := f.readsReturn(&w)
		switch {
		case !reads && !uses(&e, holds) && !(isLoad(&e) && isPlace && kept[place]):
			holds &^= replaced(&e)
		case e.Operation == x86.Cmp, e.Operation == x86.Test, e.Kind != x86.Other, reads &&
			changesOperand(&e):
			// what else is done to the slot, followReturns sees
		case e.Operation == x86.Mov && e.Dst.Mem && e.Src.Reg >= 0 && e.Dst.Size > 1 && isPlace &&
			place < 0:
			kept[place] = true
		case !computes(&e):
			return 0, true
		default:
			holds |= e.Written() &^ x86.SetOf(x86.RSP)
		}
	}
	return holds, false
}

// changesOperand says whether an instruction stores to its memory operand, but for a pop and an
// exchange.
func changesOperand(e *x86.Effects) bool {
	_, _, stores := e.Stores()
	return stores && e.Operation != x86.Pop && e.Operation != x86.Xchg
}

// uses says whether an instruction uses the value of one of some registers otherwise than for a
// memory operand or to overwrite it.
func uses(e *x86.Effects, regs x86.Set) bool {
	if regs == 0 {
		return false
	}
	isImplicit := e.Operation == x86.Stos || (e.Operation == x86.Xchg || e.Operation == x86.Mov) &&
		e.Src.Reg == x86.RAX
	return regs&e.Named()&^replaced(e) != 0 || isImplicit && regs.Has(x86.RAX)
}

// computes says whether an instruction writes to general registers alone, and to those that Written
// has.
func computes(e *x86.Effects) bool {
	if _, _, stores := e.Stores(); stores || e.StoresUnseen() {
		return false
	}
	switch e.Operation {
	case x86.Push, x86.Unknown, x86.Vector, x86.State:
		return false
	}
	return true
}

// lends says whether a frame that keeps the return address may let it be read there otherwise than
// by a mov or by a callee: one that is passed where the frame is, and no more, does not know what
// the frame's rsp will be. What takes addresses in the frame, and reads memory by registers
// besides, may read it: by one that a callee gave back, or by another part of the frame's. So may
// who finds an address above the kept place, if he is passed one below.
func (f *frame) lends(kept map[int64]bool) bool {
	top := slices.Max(slices.Collect(maps.Keys(kept)))
	passed, above, reads := false, false, false
	for b := range f.d.Blocks {
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

// readsElsewhere says whether an instruction reads memory by a register that is not known to hold
// the frame's address.
func (w *walk) readsElsewhere() bool {
	e := w.effects()
	at := e.Address()
	isFrame := at.Base == x86.RSP || at.Base == x86.RBP && w.row.CFA.Reg == x86.DwarfRBP
	switch e.Operation {
	case x86.Lea, x86.NoOp:
		return false
	case x86.Movs, x86.Cmps, x86.Stos, x86.Lods, x86.Scas:
		return true
	case x86.Mov:
		if e.Dst.Mem {
			return false
		}
	}
	return at.Base >= 0 && !isFrame || at.Index >= 0
}

// touches says whether an operand other than a mov's is one of the kept places, or overlaps one; of
// what has an index it is not known where it is.
func (w *walk) touches(kept map[int64]bool) bool {
	const widest = 64 // bytes
	e := w.effects()
	operand := e.Address()
	hasIndex := operand.Index >= 0
	operand.Index = x86.NoRegister
	place, ok := w.place(operand)
	if !ok || e.Operation == x86.Lea {
		return false
	}
	isMov := e.Operation == x86.Mov && !e.HasImm && operand.Size > 1 && !hasIndex
	isVector := e.Operation == x86.Vector || e.Operation == x86.State
	for at := range kept {
		switch {
		case hasIndex:
			return true
		case isMov && place == at:
		case at-widest < place && place < at+8 && (isVector || place+8 > at):
			return true
		}
	}
	return false
}

// takesFrame says whether an instruction takes an address in the frame otherwise than for an
// operand or for rsp and rbp themselves: place, from the CFA, into a register, or where none says
// so.
func (w *walk) takesFrame() (reg int8, place int64, ok bool) {
	const nowhere = math.MinInt64
	e := w.effects()
	isFrame := func(reg int8) bool {
		return reg == x86.RSP || reg == x86.RBP && w.row.CFA.Reg == x86.DwarfRBP
	}
	switch {
	case e.Operation == x86.Lea:
		from := e.Src
		from.Index = x86.NoRegister
		place, ok = w.place(from)
		return e.Dst.Reg, place, ok && !w.makesFrame(e.Dst.Reg)
	case e.Operation == x86.Mov && e.Dst.Reg >= 0 && isFrame(e.Src.Reg):
		return e.Dst.Reg, nowhere, !w.makesFrame(e.Dst.Reg)
	}
	_, moves := e.StackDelta()
	isAligned := e.HasImm && e.Dst.Reg == x86.RSP
	named := e.Named()
	if moves && !isAligned && named.Has(x86.RSP) || isFrame(x86.RBP) && named.Has(x86.RBP) {
		return x86.NoRegister, nowhere, true
	}
	return x86.NoRegister, 0, false
}

// makesFrame says whether what an instruction writes to a register moves the frame's own: rsp, or
// rbp where it holds the CFA from then on.
func (w *walk) makesFrame(reg int8) bool {
	return reg == x86.RSP || reg == x86.RBP &&
		w.f.code.Pieces[w.f.code.PieceOf[w.first]].CFA(w.insn().End()).Reg == x86.DwarfRBP
}

// isArgument says whether nothing but the call of a routine of the program, which ends the block,
// uses what the current instruction has written to a register, also not by another register that it
// is moved to.
func (w *walk) isArgument(reg int8) bool {
	if reg == x86.NoRegister {
		return false
	}
	holding := x86.SetOf(reg)
	for i := w.first + w.k + 1; i < w.first+w.n; i++ {
		e := w.f.code.Effects(i)
		at := e.Address()
		isMove := e.Operation == x86.Mov && e.Dst.Reg >= 0 && e.Src.Reg >= 0 && e.Dst.Size == 8
		switch {
		case e.Kind == x86.Call:
			return passes(w.f.r, i, holding)
		case isMove && holding.Has(e.Src.Reg):
			holding |= x86.SetOf(e.Dst.Reg)
		case !fillsArgument(&e) || holding&(e.Named()|x86.SetOf(at.Base, at.Index)) != 0:
			return false
		}
	}
	return false
}

// passes says whether the call i passes what some registers hold to a routine of the program that
// does not copy memory, and leaves it in none of them.
func passes(r *draft.Program, i int, holding x86.Set) bool {
	to := int(r.Code.Target[i])
	// of routines that are not recovered it is not known what they leave alone
	if r.Survey != nil || r.RoutineAt(to) < 0 || holding&^r.Clobbered.Clobbers(i) != 0 {
		return false
	}
	name := r.Code.Pieces[r.Code.PieceOf[to]].Symbol
	return !slices.ContainsFunc([]string{"memcpy", "memmove", "mempcpy", "bcopy"},
		func(copies string) bool { return strings.Contains(name, copies) })
}

// fillsArgument says whether an instruction is one of those that fill registers and places for a
// call: what it uses, it names.
func fillsArgument(e *x86.Effects) bool {
	switch e.Operation {
	case x86.Lea:
		return true
	case x86.Mov:
		return e.Dst.Mem || e.Dst.Size >= 4
	case x86.Xor:
		return !e.HasImm
	case x86.MovSX:
		return e.Src.Size == 4
	}
	return false
}

// replaced returns registers of which an instruction leaves nothing, but for one that it moves to
// itself: those of the usual instructions. What is called may spare any.
func replaced(e *x86.Effects) x86.Set {
	switch e.Operation {
	case x86.Mov, x86.MovZX, x86.MovSX, x86.Pop:
		return e.SurelyWritten() &^ x86.SetOf(e.Src.Reg)
	case x86.Lea:
		return e.SurelyWritten() &^ x86.SetOf(e.Src.Base, e.Src.Index)
	}
	return 0
}

// place returns where a place in the frame is that an operand names, from the CFA.
func (w *walk) place(rm x86.Operand) (offset int64, ok bool) {
	switch {
	case !rm.Mem || rm.Index >= 0:
	case rm.Base == x86.RSP && w.depth >= 0:
		return rm.Disp - int64(w.depth), true
	case rm.Base == x86.RBP && w.row.CFA.Reg == x86.DwarfRBP:
		return rm.Disp - int64(w.row.CFA.Off), true
	}
	return 0, false
}

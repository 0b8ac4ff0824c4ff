package soundness

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
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
	return slices.ContainsFunc(f.d.Pieces, func(i int) bool {
		return slices.ContainsFunc(f.code.Pieces[i].Rows(),
			func(row image.Row) bool { return row.CFA.Reg == image.Slot })
	})
}

// followsSlot says whether the rows of a routine whose frame address is in a slot are true from the
// entry on.
func (f *frame) followsSlot() bool {
	for _, i := range append([]int{f.d.Entry}, f.d.Others...) {
		if f.cfaOf(f.r.Blocks.BlockOf(i)) != absint.EntryCFA {
			return false
		}
	}
	below := f.framePointers()
	for b := range f.d.Blocks {
		if !f.rowsFollow(b, below[b]) {
			return false
		}
	}
	return true
}

// cfaOf returns the rule before block b.
func (f *frame) cfaOf(b int) image.CFA {
	return f.code.Pieces[f.code.PieceOf[f.d.First[b]]].CFA(f.d.Blocks[b].Lo)
}

// rowsFollow says whether the rows within block b, and those of the blocks behind it, follow from
// the one before it. below is rbp - rsp there.
func (f *frame) rowsFollow(b, below int) bool {
	bl := &f.d.Blocks[b]
	w := f.walk(b)
	w.next()
	for {
		from, e, at := w.row.CFA, w.effects(), below
		below = belowAfter(&e, below)
		if !w.next() {
			return f.leavesWell(b, from) && !slices.ContainsFunc(bl.Succ,
				func(to int) bool { return to >= 0 && !turns(&e, from, f.cfaOf(to), at) }) &&
				!slices.ContainsFunc(bl.Pads,
					func(to int) bool { return f.cfaOf(to) != from || isBase(from) })
		}
		if !turns(&e, from, w.row.CFA, at) {
			return false
		}
	}
}

// leavesWell says whether block b, whose last rule is cfa, stays in the routine, or leaves it with
// nothing but the return address on the stack.
func (f *frame) leavesWell(b int, cfa image.CFA) bool {
	switch bl := &f.d.Blocks[b]; bl.End {
	case cfg.Ret, cfg.Tail, cfg.TailInd:
		return cfa == absint.EntryCFA
	case cfg.Jcc:
		return bl.Succ[0] >= 0 && bl.Succ[1] >= 0 || cfa == absint.EntryCFA
	}
	return true
}

// isBase says whether the rule is that of a register that a routine keeps while it aligns its
// stack. The numbers of these are the hardware's.
func isBase(cfa image.CFA) bool { return cfa.Reg >= 8 && cfa.Reg <= 15 }

// turns says whether rule to holds behind an instruction before which rule from does. below is what
// rbp is above rsp by before it.
func turns(e *x86.Effects, from, to image.CFA, below int) bool {
	switch {
	case isBase(from) && from == to:
		return !overwrites(e, from.Reg)
	case from.Reg == image.Slot && from == to:
		return !overwrites(e, x86.RBP) && !storesIn(e, from)
	case from.Reg == x86.DwarfRSP && isBase(to):
		return isLea(e, to.Reg, x86.RSP, int64(from.Off)-int64(to.Off))
	case isBase(from) && to.Reg == x86.DwarfRSP:
		return isLea(e, x86.RSP, from.Reg, int64(from.Off)-int64(to.Off))
	case isBase(from) && to.Reg == image.Slot:
		isPush := e.Operation == x86.Push && e.Src.Reg == from.Reg && e.Src.Size == 8
		isStore := e.Operation == x86.Mov && e.Src.Reg == from.Reg && isSlot(&e.Dst, to)
		return from.Off == 0 &&
			(isPush && below != depthUnknown && -below-8 == int(to.Off) || isStore)
	case from.Reg == image.Slot && isBase(to):
		isPop := e.Operation == x86.Pop && e.Dst.Reg == to.Reg && e.Dst.Size == 8
		isLoad := e.Operation == x86.Mov && e.Dst.Reg == to.Reg && isSlot(&e.Src, from)
		return to.Off == 0 && (isPop && below != depthUnknown && -below == int(from.Off) || isLoad)
	}
	return isUsual(from) && isUsual(to)
}

// isUsual says whether the rule is one that the depth accounts for.
func isUsual(cfa image.CFA) bool { return cfa.Reg == x86.DwarfRSP || cfa.Reg == x86.DwarfRBP }

// overwrites says whether the instruction, or what it calls, may change a register that is not rsp.
func overwrites(e *x86.Effects, reg int8) bool {
	switch e.Kind {
	case x86.Call, x86.CallInd:
		return x86.CallerSaved.Has(reg)
	case x86.Jcc, x86.Jmp, x86.JmpInd, x86.Ret, x86.Trap:
		return false
	}
	return e.Written().Has(reg)
}

// storesIn says whether the instruction names a place within the slot as what it writes. Vector
// instructions name the beginning of a place.
func storesIn(e *x86.Effects, at image.CFA) bool {
	to, _, ok := e.Stores()
	if !ok || to.Base != x86.RBP || to.Index >= 0 {
		return false
	}
	size := max(int64(to.Size), 1)
	return to.Disp < int64(at.Off)+8 && to.Disp+size > int64(at.Off)
}

// isLea says whether the instruction sets a register to another one plus an offset.
func isLea(e *x86.Effects, to, from int8, off int64) bool {
	return e.Operation == x86.Lea && e.Dst.Size == 8 && e.Dst.Reg == to && e.Src.Base == from &&
		e.Src.Index < 0 && e.Src.Disp == off
}

// isSlot says whether an operand is all of a slot.
func isSlot(o *x86.Operand, at image.CFA) bool {
	return o.Mem && o.Size == 8 && o.Base == x86.RBP && o.Index < 0 && o.Disp == int64(at.Off)
}

// framePointers returns rbp - rsp before each block, depthUnknown where it is not known or not
// always the same.
func (f *frame) framePointers() []int {
	below := make([]int, len(f.d.Blocks))
	for b := range below {
		below[b] = depthUnset
	}
	type arrival struct{ block, below int }
	work := []arrival{{f.r.Blocks.BlockOf(f.d.Entry), depthUnknown}}
	for _, i := range f.d.Others {
		work = append(work, arrival{f.r.Blocks.BlockOf(i), depthUnknown})
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
			e := w.effects()
			behind = belowAfter(&e, behind)
		}
		for _, to := range f.d.Blocks[a.block].Succ {
			if to >= 0 {
				work = append(work, arrival{to, behind})
			}
		}
		for _, to := range f.d.Blocks[a.block].Pads {
			work = append(work, arrival{to, depthUnknown})
		}
	}
	return below
}

// belowAfter returns rbp - rsp behind an instruction before which it is below.
func belowAfter(e *x86.Effects, below int) int {
	switch {
	case e.Operation == x86.Mov && e.Dst.Size == 8 &&
		(e.Dst.Reg == x86.RBP && e.Src.Reg == x86.RSP ||
			e.Dst.Reg == x86.RSP && e.Src.Reg == x86.RBP):
		return 0
	case e.Operation == x86.Lea && e.Dst.Size == 8 && e.Dst.Reg == x86.RSP &&
		e.Src.Base == x86.RBP && e.Src.Index < 0:
		return max(int(-e.Src.Disp), depthUnknown)
	case overwrites(e, x86.RBP):
		return depthUnknown
	}
	delta, ok := e.StackDelta()
	if !ok || below == depthUnknown {
		return depthUnknown
	}
	return max(below-delta, depthUnknown)
}

// realigns says whether the instruction changes rsp as a routine does whose frame address is in a
// register or a slot.
func (f *frame) realigns(w *walk, e *x86.Effects) bool {
	switch from := w.row.CFA; {
	case !f.realigned:
		return false
	case from.Reg == image.Slot:
		return allocates(e)
	case isBase(from):
		next := f.code.Pieces[f.code.PieceOf[w.first]].CFA(w.insn().End())
		return next.Reg == x86.DwarfRSP && turns(e, from, next, depthUnknown) ||
			e.Operation != x86.Mov && allocates(e)
	}
	return false
}

package soundness

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A frame analysis follows the stack pointer through a routine, to know how deep the frame is at
// each call, and to find what would give two activations one canonical
// frame address (CFA).
type frame struct {
	r         *draft.Program
	code      *sweep.Code
	d         *draft.Routine
	depthIn   []int // by block: CFA - rsp before it
	readsBack bool  // the routine reads its own return address
	realigned bool  // its frame address is in a slot, and its rows say so truly: see realign.go
	values    *jumptable.Resolver
}

// Special values of a depth.
const (
	depthUnknown = -1 // not known, or not always the same
	depthUnset   = -2
)

// analyseFrame fills in the blocks' depths and leaves the routine out when its frame is not
// understood. It says whether the routine keeps its return address somewhere, as setjmp does.
func analyseFrame(r *draft.Program, d *draft.Routine) (savesReturn bool) {
	f := &frame{r: r, code: r.Code, d: d, depthIn: make([]int, len(d.Blocks))}
	for b := range f.depthIn {
		f.depthIn[b] = depthUnset
	}
	if f.hasFramePointer() {
		f.flow()
	}
	f.realigned = f.inSlot() && f.followsSlot()
	for b := range d.Blocks {
		f.check(b)
	}
	if (f.readsBack || d.LeftOut != "") && !d.Thunk {
		// the rows of what is left out may not be true
		use := r.Returns.ReturnUse(d.Addr)
		d.Moves = use.Moves || use.Drops
	}
	if f.readsBack && f.savesReturn() {
		d.Leave("stores its own return address (may return twice)")
		return true
	}
	return false
}

// flow finds the depth before each block, to a fixpoint.
func (f *frame) flow() {
	type arrival struct{ block, depth int }
	work := []arrival{{f.r.Blocks.BlockOf(f.d.Entry), 8}}
	for _, i := range f.d.Others {
		work = append(work, arrival{f.r.Blocks.BlockOf(i), 8})
	}
	for len(work) > 0 {
		a := work[len(work)-1]
		work = work[:len(work)-1]
		switch known := f.depthIn[a.block]; {
		case known == a.depth || known == depthUnknown:
			continue
		case known == depthUnset:
			f.depthIn[a.block] = a.depth
		default:
			f.depthIn[a.block] = depthUnknown
		}
		bl := &f.d.Blocks[a.block]
		w := f.walk(a.block)
		for w.next() {
		}
		depth := w.after()
		for _, to := range bl.Succ {
			if to >= 0 {
				work = append(work, arrival{to, depth})
			}
		}
		for _, to := range bl.Pads {
			work = append(work, arrival{to, depthUnknown})
		}
	}
}

// A walk goes through a block's instructions with the unwind row and the depth before each.
type walk struct {
	f        *frame
	first, n int // instructions
	k        int // of the current one in the block; -1 before the first
	rows     []image.Row
	row      image.Row
	depth    int
	expected int // the depth that the instructions before lead to
}

func (f *frame) walk(b int) walk {
	i := int(f.d.First[b])
	return walk{f: f, first: i, n: len(f.d.Blocks[b].Insns), k: -1,
		rows: f.code.Pieces[f.code.PieceOf[i]].Rows(), depth: f.depthIn[b]}
}

// next goes to the next instruction.
func (w *walk) next() bool {
	if w.k+1 >= w.n {
		return false
	}
	if w.k >= 0 {
		w.depth = w.after()
	}
	w.k++
	pc := w.insn().Addr
	if w.k == 0 {
		w.row = image.RowAt(w.rows, pc)
		for len(w.rows) > 0 && w.rows[0].PC <= pc {
			at := 1
			for at < len(w.rows) && w.rows[at].PC <= pc {
				at++
			}
			w.rows = w.rows[at:]
		}
	}
	for len(w.rows) > 0 && w.rows[0].PC <= pc {
		w.row, w.rows = w.rows[0], w.rows[1:]
	}
	w.expected = w.depth
	if w.row.CFA.Reg == x86.DwarfRSP {
		w.depth = int(w.row.CFA.Off)
	}
	return true
}

func (w *walk) insn() *cfg.Insn      { return &w.f.code.Insns[w.first+w.k] }
func (w *walk) effects() x86.Effects { return w.f.code.Effects(w.first + w.k) }

// after returns the depth behind the current instruction.
func (w *walk) after() int {
	q := w.insn()
	if q.LeavesRSP() {
		return w.depth
	}
	if delta, ok := q.StackDelta(w.f.code.Bytes(w.first + w.k)); ok {
		if w.depth < 0 {
			return w.depth
		}
		return max(w.depth-delta, depthUnknown)
	}
	if w.row.CFA.Reg != x86.DwarfRBP {
		return depthUnknown
	}
	off := int(w.row.CFA.Off)
	switch e := w.effects(); {
	case e.Operation == x86.Leave:
		return max(off-8, depthUnknown)
	case e.Operation == x86.Mov && e.Src.Reg == x86.RBP:
		return max(off, depthUnknown)
	case e.Operation == x86.Lea && e.Src.Base == x86.RBP && e.Src.Index < 0:
		return max(off-int(e.Src.Disp), depthUnknown)
	}
	return depthUnknown
}

// check leaves the routine out for what block b does to its frame.
func (f *frame) check(b int) {
	w := f.walk(b)
	for w.next() {
		q := w.insn()
		if w.k > 0 && w.expected >= 0 && w.depth != w.expected {
			if f.correct(b) {
				f.check(b)
			} else {
				f.d.Leave("unwind rows contradict the stack pointer at %x", q.Addr)
			}
			return
		}
		f.checkStackPointer(&w)
		if f.readsReturn(&w) {
			f.readsBack = true
			if e := w.effects(); !isLoad(&e) {
				f.d.Leave("changes or pops its own return address at %x", q.Addr)
			}
		}
	}
	last := w.insn()
	if bl := &f.d.Blocks[b]; bl.IsCall() {
		bl.Depth = max(w.depth, depthUnknown)
	}
	switch bl := &f.d.Blocks[b]; {
	case w.depth < 0 || w.depth == 8:
	case bl.End == cfg.Ret:
		f.d.Leave("returns elsewhere than to its caller at %x", last.Addr)
	case bl.End == cfg.Tail || bl.End == cfg.Jcc && bl.Succ[0] < 0:
		f.d.Leave("jumps out with a frame at %x", last.Addr)
	}
	if !f.realigned || w.row.RA != image.RAAtCFA {
		f.checkRow(w.row, last.Addr)
	}
}

// checkRow leaves the routine out when the unwind row is of no use.
func (f *frame) checkRow(row image.Row, pc uint64) {
	switch reg := row.CFA.Reg; {
	case row.RA == image.RAUndefined:
		f.d.Leave("outermost frame (no caller)")
	case reg == image.Undefined:
		f.d.Leave("no unwind rows at %x", pc)
	case reg == image.Expression:
		f.d.Leave("cfa is an expression at %x", pc)
	case reg != x86.DwarfRSP && reg != x86.DwarfRBP:
		f.d.Leave("cfa is neither rsp nor rbp + offset at %x", pc)
	case row.RA == image.RAOther:
		f.d.Leave("return address is not where the call left it at %x", pc)
	}
}

// checkStackPointer leaves the routine out when the instruction may switch stacks.
func (f *frame) checkStackPointer(w *walk) {
	q := w.insn()
	if q.LeavesRSP() {
		return
	}
	if _, ok := q.StackDelta(w.f.code.Bytes(w.first + w.k)); ok {
		return
	}
	e := w.effects()
	if w.row.CFA.Reg == x86.DwarfRBP && allocates(&e) || f.realigns(w, &e) || f.restores(w, &e) {
		return
	}
	f.d.Leave("writes rsp from a register or memory at %x", q.Addr)
}

// allocates says whether an instruction changes rsp as compilers do in a routine with a frame
// pointer: to allocate memory on the stack, to align it, to release it.
func allocates(e *x86.Effects) bool {
	switch e.Operation {
	case x86.Leave, x86.Add, x86.Sub, x86.And:
		return true
	case x86.Or, x86.Adc, x86.Sbb, x86.Xor:
		return e.HasImm
	case x86.Mov:
		return !e.HasImm && (!e.Src.Mem || e.Src.Base == x86.RBP && e.Src.Index < 0)
	case x86.Lea:
		return e.Src.Base == x86.RBP || e.Src.Base == x86.RSP
	}
	return false
}

// restores says whether the instruction sets rsp to what it was earlier in the activation:
// compilers save it in a register where they push an unknown number of arguments.
func (f *frame) restores(w *walk, e *x86.Effects) bool {
	if e.Operation != x86.Mov || e.Src.Reg < 0 || e.Dst.Mem {
		return false
	}
	next := f.code.Pieces[f.code.PieceOf[w.first]].CFA(w.insn().End())
	if next.Reg != x86.DwarfRSP {
		return false
	}
	if f.values == nil {
		f.values = jumptable.New(f.r.Input(f.d))
	}
	return f.values.Origins(e.Src.Reg, f.r.Blocks.BlockOf(w.first), w.k,
		func(v absint.Value, own bool) bool {
			return own && v == absint.Value{Sym: absint.FrameSymbol, Bits: 64,
				Off: -int64(next.Off)}
		})
}

// readsReturn says whether the instruction uses the return address of its own activation, other
// than to return.
func (f *frame) readsReturn(w *walk) bool {
	q := w.insn()
	if !q.HasModRM || q.IsMemory() && q.Operation() == x86.Pop {
		return q.Operation() == x86.Pop && w.depth == 8
	}
	isBased := isBase(w.row.CFA)
	if !q.IsMemory() || q.IsRIPRelative() || !isBased && !q.MayBeOnStack() {
		return false
	}
	e := w.effects()
	at := e.Address()
	if e.Operation == x86.Lea || !at.Mem || at.Index >= 0 {
		return false
	}
	switch {
	case isBased && at.Base == w.row.CFA.Reg:
		// that one is a copy, for debuggers
		return at.Disp-int64(w.row.CFA.Off) == -8 && e.Operation != x86.Push
	case at.Base == x86.RSP && w.depth >= 0:
		return int(at.Disp)-w.depth == -8
	case at.Base == x86.RBP && w.row.CFA.Reg == x86.DwarfRBP:
		return at.Disp-int64(w.row.CFA.Off) == -8
	}
	return false
}

// isLoad says whether the instruction moves what memory holds to a register, more than a byte.
func isLoad(e *x86.Effects) bool {
	return e.Operation == x86.Mov && e.Src.Mem && e.Src.Size > 1
}

// hasFramePointer says whether some rule needs rbp. Otherwise the rows give the depth everywhere.
func (f *frame) hasFramePointer() bool {
	return slices.ContainsFunc(f.d.Pieces, func(i int) bool {
		return slices.ContainsFunc(f.code.Pieces[i].Rows(),
			func(row image.Row) bool { return row.CFA.Reg == x86.DwarfRBP })
	})
}

package draft

import (
	"sync"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/x86"
)

// A ReturnUse says what a function does with its return address other than to return by it.
type ReturnUse struct {
	Saves bool // puts it where it may be returned by again, as setjmp does
	Moves bool // changes it: behind the call there may be data for it, and no code
	Drops bool // returns without it, to its caller's caller
	jumps bool // leaves it to what it jumps to through a register or memory
}

// A returnWalk is a place in a function and what is known there.
type returnWalk struct {
	addr    uint64
	depth   int     // from rsp to the end of the return address
	frame   int     // likewise from rbp; 0: that is not known
	holding x86.Set // registers that the return address was popped into
	changed x86.Set // of these, those that something else was written to since
}

// Returns find what functions do with their return addresses. They may be asked concurrently.
type Returns struct {
	r    *Program
	code *sweep.Code
	file *sweep.File
	uses sync.Map // by entry
}

func (u *Returns) forget() { u.uses.Clear() }

// ReturnUse returns what the function at an address does with its return address, and remembers it.
func (u *Returns) ReturnUse(entry uint64) ReturnUse {
	if use, ok := u.uses.Load(entry); ok {
		return use.(ReturnUse)
	}
	use := u.followReturns(entry)
	u.uses.Store(entry, use)
	return use
}

// followReturns follows a function on all ways from its entry, each as far as rsp can be followed:
// what lies behind that shows nothing. It needs no unwind rows.
func (u *Returns) followReturns(entry uint64) (use ReturnUse) {
	const most = 1024 // instructions: what does more is no such function
	seen := map[returnWalk]bool{}
	work := []returnWalk{{addr: entry, depth: 8}}
	for len(work) > 0 && len(seen) < most && u.r.Steps.Load() > 0 {
		w := work[len(work)-1]
		work = work[:len(work)-1]
		if !seen[w] {
			seen[w] = true
			u.r.Steps.Add(-1)
			work = append(work, u.followReturn(w, &use)...)
		}
	}
	return use
}

// followReturn notes what one instruction does with the return address, and returns where it leads.
func (u *Returns) followReturn(w returnWalk, use *ReturnUse) []returnWalk {
	s := u.file.Image.SectionAt(w.addr)
	if s == nil || !s.Exec {
		return nil
	}
	code := s.Data[w.addr-s.Addr:]
	in, ok := x86.Decode(code)
	if !ok {
		return nil
	}
	q := cfg.Insn{Addr: w.addr, Inst: in}
	next := w
	next.addr = q.End()
	switch q.Kind {
	case x86.Jmp:
		next.addr = q.Target()
		use.Saves = use.Saves || cfg.IsReturnsTwiceSymbol(u.file.Imports[next.addr])
		return []returnWalk{next}
	case x86.Jcc, x86.Loop:
		taken := next
		taken.addr = q.Target()
		return []returnWalk{next, taken}
	case x86.JmpInd:
		e := q.Effects(code, q.End())
		use.jumps = true
		use.Moves = use.Moves || w.holding.Has(e.Src.Reg)
		return nil
	case x86.Call:
		if u.r.endsIn(u.code.Find(q.Target()), q.Target()) {
			return nil
		}
	case x86.Ret:
		use.Drops = use.Drops || w.depth < 8
		return nil
	case x86.Trap:
		return nil
	}
	e := q.Effects(code, q.End())
	next.note(&e, use)
	if !next.moveStack(&e) {
		return nil
	}
	return []returnWalk{next}
}

// note notes what an instruction that goes on to the next one does with the return address.
func (w *returnWalk) note(e *x86.Effects, use *ReturnUse) {
	at := e.Address()
	onStack := at.Base == x86.RSP && int(at.Disp) == w.depth-8 ||
		at.Base == x86.RBP && w.frame > 0 && int(at.Disp) == w.frame-8
	isSlot := at.Mem && at.Index < 0 && onStack
	switch {
	case e.Operation == x86.Pop && w.depth == 8:
		use.Saves = true
		popped := x86.SetOf(e.Dst.Reg)
		w.holding, w.changed = w.holding|popped, w.changed&^popped
		return
	case e.Operation == x86.Push && e.Src.Reg >= 0:
		use.Moves = use.Moves || w.depth == 0 && w.changed.Has(e.Src.Reg)
	case isSlot:
		_, _, stores := e.Stores()
		use.Saves = true
		use.Moves = use.Moves || stores
	case e.Operation == x86.Mov && e.Src.Reg == x86.RSP && e.Dst.Reg >= 0 && e.Dst.Reg != x86.RBP:
		// it may be read by that
		use.Saves = true
	}
	w.changed |= w.holding & e.Written()
}

// moveStack follows rsp and rbp; false: they are lost.
func (w *returnWalk) moveStack(e *x86.Effects) bool {
	if e.Operation == x86.Mov && e.Src.Reg == x86.RSP && e.Dst.Reg == x86.RBP {
		w.frame = w.depth
		return true
	}
	if e.Operation == x86.Leave && w.frame > 0 {
		w.depth = w.frame - 8
		return true
	}
	delta, ok := e.StackDelta()
	w.depth -= delta
	return ok
}

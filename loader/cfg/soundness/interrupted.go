package soundness

import (
	"encoding/binary"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// checkRestarts leaves out restartable sequences (rseq), which the kernel leaves, for a place
// that data names, where another thread gets the processor.
func (s *soundness) checkRestarts() {
	for _, at := range restarts(s.r.File.Image) {
		if p := s.r.Code.FindPiece(at); p >= 0 && s.r.IsKnown(s.r.Code.Pieces[p].Routine) {
			s.r.Routines[s.r.Code.Pieces[p].Routine].Leave("has a restartable sequence at %x", at)
		}
	}
}

// leaveOutTransactions leaves out what may run in hardware transactions: whatever traps ends these.
// mayBeCalled says of a routine whether what is called by a pointer within one may be that.
func leaveOutTransactions(r *draft.Program, kept []*draft.Routine,
	mayBeCalled func(d *draft.Routine) bool) {
	if !slices.ContainsFunc(r.Code.Insns, isXbegin) {
		return
	}
	t := &transactions{r: r, code: r.Code, open: make([][]bool, len(r.Routines)),
		nested: map[int]bool{}}
	for _, d := range kept {
		for b := range d.Blocks {
			if last := d.Last(b); isXbegin(r.Code.Insns[last]) {
				d.Leave("may run in a hardware transaction at %x", r.Code.Insns[last].Addr)
				t.reach(d, t.begun(d, b))
			}
		}
	}
	t.followAll()
	for _, d := range kept {
		if t.calls && d.Entry >= 0 && mayBeCalled(d) {
			t.reach(d, r.Blocks.BlockOf(d.Entry))
		}
	}
	t.followAll()
}

// restarts lists where restartable sequences begin, and where they are left for: struct rseq_cs, in
// the section that the kernel's documentation gives it.
func restarts(im *image.Image) (places []uint64) {
	const size, start, abort = 32, 8, 24
	for i := range im.Sections {
		s := &im.Sections[i]
		if s.Name != "__rseq_cs" {
			continue
		}
		for at := 0; at+size <= len(s.Data); at += size {
			for _, field := range []int{start, abort} {
				to, ok := im.Relocations().At(s.Addr + uint64(at+field))
				if !ok {
					to = binary.LittleEndian.Uint64(s.Data[at+field:])
				}
				places = append(places, to)
			}
		}
	}
	return places
}

func isXbegin(q cfg.Insn) bool { return q.Kind == x86.Loop && q.Operation() == x86.XBegin }

// transactions finds the blocks that may run in a transaction which their routine, or what calls
// it, has begun. One that is still open when its routine returns is not followed: C libraries elide
// locks by such, if they are asked to, and all that they have may then run in one.
type transactions struct {
	r    *draft.Program
	code *sweep.Code
	open [][]bool // by draft and block: as it begins
	// drafts that begin one within another, which goes on behind the end of that
	nested map[int]bool
	calls  bool // what is not known, by a pointer or in another image, may be called in one
	work   []place
}

// A place is a block of a routine.
type place struct {
	draft *draft.Routine
	block int
}

// begun is a block that runs in the transaction that block b begins, and that all of it leads to:
// the next or, where the status is compared before anything else is decided, where -1 leads.
func (t *transactions) begun(d *draft.Routine, b int) int {
	const mostBlocks = 4
	next := d.Blocks[b].Succ[1]
	at := next
	for range mostBlocks {
		if at < 0 {
			break
		}
		bl := &d.Blocks[at]
		switch n := len(bl.Insns); {
		case bl.End == cfg.Fall && t.keepsStatus(d, at, n), bl.End == cfg.Jmp && t.keepsStatus(d,
			at, n-1):
			at = bl.Succ[0]
		case bl.End == cfg.Jcc && n >= 2 && t.keepsStatus(d, at, n-2) && bl.Succ[0] >= 0 &&
			t.comparesStatus(d, at):
			return bl.Succ[bl.Insns[n-1].Condition()&1] // jne goes on where it is not taken
		default:
			return next
		}
	}
	return next
}

// comparesStatus says whether a block ends in cmp $-1,%eax with je or jne.
func (t *transactions) comparesStatus(d *draft.Routine, b int) bool {
	e := t.code.Effects(d.Last(b) - 1)
	isMinusOne := e.Operation == x86.Cmp && e.Dst.Reg == x86.RAX && e.Dst.Size == 4 && e.HasImm &&
		e.Imm == -1
	return isMinusOne && d.Blocks[b].Insns[len(d.Blocks[b].Insns)-1].Condition()&^1 == x86.Equal
}

// keepsStatus says whether the first n instructions of a block write nothing but -1 to eax.
func (t *transactions) keepsStatus(d *draft.Routine, b, n int) bool {
	for k := range n {
		e := t.code.Effects(int(d.First[b]) + k)
		isMinusOne := e.Operation == x86.Mov && e.Dst.Reg == x86.RAX && e.Dst.Size == 4 &&
			e.HasImm && e.Imm == -1
		if e.Calls() || e.Written().Has(x86.RAX) && !isMinusOne {
			return false
		}
	}
	return true
}

// reach notes a block that begins in a transaction.
func (t *transactions) reach(d *draft.Routine, block int) {
	if block < 0 {
		return
	}
	if t.open[d.ID] == nil {
		t.open[d.ID] = make([]bool, len(d.Blocks))
	}
	if !t.open[d.ID][block] {
		t.open[d.ID][block] = true
		t.work = append(t.work, place{d, block})
	}
}

func (t *transactions) followAll() {
	for len(t.work) > 0 {
		p := t.work[len(t.work)-1]
		t.work = t.work[:len(t.work)-1]
		t.follow(p.draft, p.block)
	}
}

// follow leaves a routine out of which a block begins in a transaction, and goes on to what comes
// next.
func (t *transactions) follow(d *draft.Routine, block int) {
	bl := &d.Blocks[block]
	d.Leave("may run in a hardware transaction at %x", bl.Lo)
	if isXbegin(bl.Insns[len(bl.Insns)-1]) && !t.nested[d.ID] {
		t.nested[d.ID] = true
		for b, open := range t.open[d.ID] {
			if open {
				t.work = append(t.work, place{d, b})
			}
		}
	}
	ends := func(q cfg.Insn) bool {
		operation := q.Operation()
		return operation == x86.XAbort || operation == x86.XEnd && !t.nested[d.ID]
	}
	if bl.End == cfg.NoReturn || slices.ContainsFunc(bl.Insns, ends) {
		return // what never returns ends by a system call, which ends the transaction
	}
	for _, next := range bl.Succ {
		t.reach(d, next)
	}
	to, known := int(t.code.Target[d.Last(block)]), -1
	if t.code.Insns[d.Last(block)].Kind.IsRelative() {
		known = t.r.RoutineAt(to)
	}
	switch {
	case known >= 0:
		t.reach(t.r.Routines[known], t.r.Blocks.BlockOf(to))
	case bl.CallReturns() || bl.End == cfg.Tail || bl.End == cfg.TailInd:
		t.calls = true
	}
}

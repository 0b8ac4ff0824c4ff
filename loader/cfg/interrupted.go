package cfg

import (
	"encoding/binary"
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// checkRestarts leaves out restartable sequences (rseq), which the kernel leaves, for a place
// that data names, where another thread gets the processor.
func (s *soundness) checkRestarts() {
	for _, at := range restarts(s.r.file.im) {
		if p := s.r.code.findPiece(at); p >= 0 {
			s.r.drafts[s.r.code.pieces[p].routine].leave("has a restartable sequence at %x", at)
		}
	}
}

// leaveOutTransactions leaves out what may run in hardware transactions: whatever traps ends these.
// mayBeCalled says of a routine whether what is called by a pointer within one may be that.
func leaveOutTransactions(r *recovery, kept []*draft, mayBeCalled func(d *draft) bool) {
	if !slices.ContainsFunc(r.code.insns, isXbegin) {
		return
	}
	t := &transactions{r: r, code: r.code, open: make([][]bool, len(r.drafts)),
		nested: map[int]bool{}}
	for _, d := range kept {
		for b := range d.blocks {
			if last := d.last(b); isXbegin(r.code.insns[last]) {
				d.leave("may run in a hardware transaction at %x", r.code.insns[last].Addr)
				t.reach(d, t.begun(d, b))
			}
		}
	}
	t.followAll()
	for _, d := range kept {
		if t.calls && d.entry >= 0 && mayBeCalled(d) {
			t.reach(d, r.blocks.blockOf(d.entry))
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
				to, ok := im.Relocations()[s.Addr+uint64(at+field)]
				if !ok {
					to = binary.LittleEndian.Uint64(s.Data[at+field:])
				}
				places = append(places, to)
			}
		}
	}
	return places
}

func isXbegin(q Insn) bool { return q.Operation() == x86.XBegin }

// transactions finds the blocks that may run in a transaction which their routine, or what calls
// it, has begun. One that is still open when its routine returns is not followed: C libraries elide
// locks by such, if they are asked to, and all that they have may then run in one.
type transactions struct {
	r    *recovery
	code *code
	open [][]bool // by draft and block: as it begins
	// drafts that begin one within another, which goes on behind the end of that
	nested map[int]bool
	calls  bool // what is not known, by a pointer or in another image, may be called in one
	work   []place
}

// A place is a block of a routine.
type place struct {
	draft *draft
	block int
}

// begun is a block that runs in the transaction that block b begins, and that all of it leads to:
// the next or, where the status is compared before anything else is decided, where -1 leads.
func (t *transactions) begun(d *draft, b int) int {
	const mostBlocks = 4
	next := d.blocks[b].Succ[1]
	at := next
	for range mostBlocks {
		if at < 0 {
			break
		}
		bl := &d.blocks[at]
		switch n := len(bl.Insns); {
		case bl.End == Fall && t.keepsStatus(d, at, n), bl.End == Jmp && t.keepsStatus(d, at, n-1):
			at = bl.Succ[0]
		case bl.End == Jcc && n >= 2 && t.keepsStatus(d, at, n-2) && bl.Succ[0] >= 0 &&
			t.comparesStatus(d, at):
			return bl.Succ[bl.Insns[n-1].Condition()&1] // jne goes on where it is not taken
		default:
			return next
		}
	}
	return next
}

// comparesStatus says whether a block ends in cmp $-1,%eax with je or jne.
func (t *transactions) comparesStatus(d *draft, b int) bool {
	e := t.code.effects(d.last(b) - 1)
	isMinusOne := e.Operation == x86.Cmp && e.Dst.Reg == x86.RAX && e.Dst.Size == 4 && e.HasImm &&
		e.Imm == -1
	return isMinusOne && d.blocks[b].Insns[len(d.blocks[b].Insns)-1].Condition()&^1 == x86.Equal
}

// keepsStatus says whether the first n instructions of a block write nothing but -1 to eax.
func (t *transactions) keepsStatus(d *draft, b, n int) bool {
	for k := range n {
		e := t.code.effects(int(d.first[b]) + k)
		isMinusOne := e.Operation == x86.Mov && e.Dst.Reg == x86.RAX && e.Dst.Size == 4 &&
			e.HasImm && e.Imm == -1
		if e.Calls() || e.Written().Has(x86.RAX) && !isMinusOne {
			return false
		}
	}
	return true
}

// reach notes a block that begins in a transaction.
func (t *transactions) reach(d *draft, block int) {
	if block < 0 {
		return
	}
	if t.open[d.id] == nil {
		t.open[d.id] = make([]bool, len(d.blocks))
	}
	if !t.open[d.id][block] {
		t.open[d.id][block] = true
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
func (t *transactions) follow(d *draft, block int) {
	bl := &d.blocks[block]
	d.leave("may run in a hardware transaction at %x", bl.Lo)
	if isXbegin(bl.Insns[len(bl.Insns)-1]) && !t.nested[d.id] {
		t.nested[d.id] = true
		for b, open := range t.open[d.id] {
			if open {
				t.work = append(t.work, place{d, b})
			}
		}
	}
	ends := func(q Insn) bool {
		operation := q.Operation()
		return operation == x86.XAbort || operation == x86.XEnd && !t.nested[d.id]
	}
	if bl.End == NoReturn || slices.ContainsFunc(bl.Insns, ends) {
		return // what never returns ends by a system call, which ends the transaction
	}
	for _, next := range bl.Succ {
		t.reach(d, next)
	}
	to, known := int(t.code.target[d.last(block)]), -1
	if t.code.insns[d.last(block)].Kind.IsRelative() {
		known = t.r.routineAt(to)
	}
	switch {
	case known >= 0:
		t.reach(t.r.drafts[known], t.r.blocks.blockOf(to))
	case bl.CallReturns() || bl.End == Tail || bl.End == TailInd:
		t.calls = true
	}
}

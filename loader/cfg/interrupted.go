package cfg

import (
	"encoding/binary"
	"slices"

	"wpptrace/loader/x86"
)

// leaveOutInterrupted leaves out what a probe would keep from its end: hardware transactions, which
// whatever traps ends; and restartable sequences (rseq), which the kernel leaves, for a place that
// data names, where another thread gets the processor.
func (r *recovery) leaveOutInterrupted(kept []*draft) {
	for _, at := range r.restarts() {
		if p := r.findPiece(at); p >= 0 {
			r.drafts[r.pieces[p].routine].leave("has a restartable sequence at %x", at)
		}
	}
	if !slices.ContainsFunc(r.insns, isXbegin) {
		return
	}
	t := &transactions{recovery: r, open: make([][]bool, len(r.drafts))}
	for _, d := range kept {
		for b := range d.blocks {
			if last := d.last(b); isXbegin(r.insns[last]) {
				d.leave("may run in a hardware transaction at %x", r.insns[last].Addr)
				t.reach(d, t.begun(d, b))
			}
		}
	}
	for len(t.work) > 0 {
		p := t.work[len(t.work)-1]
		t.work = t.work[:len(t.work)-1]
		t.follow(p.draft, p.block)
	}
}

// restarts lists where restartable sequences begin, and where they are left for: struct rseq_cs, in
// the section that the kernel's documentation gives it.
func (r *recovery) restarts() (places []uint64) {
	const size, start, abort = 32, 8, 24
	for i := range r.im.Sections {
		s := &r.im.Sections[i]
		if s.Name != "__rseq_cs" {
			continue
		}
		for at := 0; at+size <= len(s.Data); at += size {
			for _, field := range []int{start, abort} {
				to, ok := r.im.Relocations()[s.Addr+uint64(at+field)]
				if !ok {
					to = binary.LittleEndian.Uint64(s.Data[at+field:])
				}
				places = append(places, to)
			}
		}
	}
	return places
}

func isXbegin(q Insn) bool { return q.Kind == x86.Loop && q.Map == 0 && q.Op == 0xc7 }

// isTransactionsEnd recognizes xend, and xabort, behind which nothing runs in the transaction.
func isTransactionsEnd(q Insn) bool {
	return q.Map == 1 && q.Op == 0x01 && q.ModRM == 0xd5 || q.Map == 0 && q.Op == 0xc6 && q.ModRM == 0xf8
}

// transactions finds the blocks that may run in a transaction which their routine, or what calls it,
// has begun, directly and in the same image; the first end ends it. One that is still open when its
// routine returns is not followed: C libraries elide locks by such, if they are asked to, and all that
// they have may then run in one.
type transactions struct {
	*recovery
	open [][]bool // by draft and block: as it begins
	work []place
}

// A place is a block of a routine.
type place struct {
	draft *draft
	block int
}

// begun is the block that runs next in the transaction that block b begins: the next or, where that
// compares the status, where -1 leads.
func (t *transactions) begun(d *draft, b int) int {
	const compare, eax, je, jne = 0x83, 0xf8, 4, 5
	next := d.blocks[b].Succ[1]
	if next < 0 || d.blocks[next].End != Jcc || len(d.blocks[next].Insns) < 2 {
		return next
	}
	bl := &d.blocks[next]
	q := &bl.Insns[len(bl.Insns)-2]
	code := t.bytes(d.last(next) - 1)
	isStatus := q.Map == 0 && q.Op == compare && q.ModRM == eax && len(code) == 3 && code[2] == 0xff
	if !isStatus || bl.Succ[0] < 0 || t.writesStatus(d, next) {
		return next
	}
	switch bl.Insns[len(bl.Insns)-1].Op & 0xf {
	case je:
		return bl.Succ[0]
	case jne:
		return bl.Succ[1]
	}
	return next
}

// writesStatus says whether a block writes eax before its comparison and jump.
func (t *transactions) writesStatus(d *draft, b int) bool {
	for k := range len(d.blocks[b].Insns) - 2 {
		op := newOperation(&d.blocks[b].Insns[k], t.bytes(int(d.first[b])+k))
		if writtenRegisters(&op)&bitOf(rax) != 0 {
			return true
		}
	}
	return false
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

// follow leaves a routine out of which a block begins in a transaction, and goes on to what comes next.
func (t *transactions) follow(d *draft, block int) {
	bl := &d.blocks[block]
	d.leave("may run in a hardware transaction at %x", bl.Lo)
	if bl.End == NoReturn || slices.ContainsFunc(bl.Insns, isTransactionsEnd) {
		return // what never returns ends by a system call, which ends the transaction
	}
	for _, next := range bl.Succ {
		t.reach(d, next)
	}
	if to := int(t.target[d.last(block)]); t.routineAt(to) >= 0 && isRelative(t.insns[d.last(block)].Kind) {
		t.reach(t.drafts[t.routineAt(to)], t.blockOf(t.drafts[t.routineAt(to)], to))
	}
}

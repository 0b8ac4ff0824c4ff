package cfg

import (
	"slices"

	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/x86"
)

// findLabels finds the instructions amidst a routine whose address another routine takes: a nested
// function of GNU C leaves its parent's callees by a jump there, as an exception leaves them for a
// landing pad.
func (r *recovery) findLabels() {
	seen := map[int]bool{}
	for i := range r.code.insns {
		taken := r.file.takenAddress(i)
		if taken == 0 {
			continue
		}
		to := r.code.find(taken)
		if to < 0 || r.routineAt(to) >= 0 {
			continue
		}
		d := r.drafts[r.code.pieces[r.code.pieceOf[to]].routine]
		if d.id != r.code.pieces[r.code.pieceOf[i]].routine && !seen[to] {
			seen[to] = true
			d.labels = append(d.labels, to)
		}
	}
}

// takenAddress is the address that instruction i puts into a register or into memory, 0 if it does
// nothing of the kind.
func (f *file) takenAddress(i int) uint64 {
	q := &f.code.insns[i]
	switch q.Operation() {
	case x86.Lea:
		if q.IsRIPRelative() {
			_, rm, _ := f.code.operands(i)
			return uint64(rm.Disp)
		}
	case x86.Mov:
		if !f.im.PIE {
			to, _ := q.AddressImmediate(f.code.bytes(i))
			return to
		}
	}
	return 0
}

// linkLabels makes each label a landing pad of every call.
func (bd *builder) linkLabels(d *draft) {
	switch {
	case len(d.labels) == 0:
		return
	case len(d.labels) > jumptable.MaxLabels:
		d.leave("too many places in its middle that other routines may jump to")
		return
	}
	labels := make([]int, len(d.labels))
	for k, i := range d.labels {
		labels[k] = bd.blockOf(i)
	}
	d.pads = append(d.pads, labels...)
	for b := range d.blocks {
		switch bl := &d.blocks[b]; {
		case !bl.IsCall():
		case len(bl.Pads) == 0:
			bl.Pads = labels // one list for all, which are many: it is not to be changed
		default:
			pads := slices.Concat(bl.Pads, labels)
			slices.Sort(pads)
			bl.Pads = slices.Compact(pads)
		}
	}
}

// findPointedParts finds the cold parts that data leads into and that do not jump back into their
// routines, so that they may be those of others, too.
func (f *file) findPointedParts() {
	for k := range f.code.pieces {
		if p := &f.code.pieces[k]; p.isCold() && !p.back {
			if _, ok := f.dataReferences.next(p.Lo, p.Hi); ok {
				f.pointedParts = append(f.pointedParts, k)
			}
		}
	}
}

// label returns an instruction of the routine, other than where one is entered, that anything but
// the tables found mentions: a jump through a pointer, from this routine or from elsewhere, may go
// there. Only those for which is holds count.
func (r *recovery) label(d *draft, found map[int]*jumptable.Table,
	is func(insn int) bool) (insn int, ok bool) {
	known := jumptable.Targets(found)
	return r.eachLabel(d, func(i int) bool { return !known[i] && is(i) })
}

// eachLabel visits the instructions of the routine, other than where one is entered, that anything
// mentions, and returns the first for which the visitor answers true.
func (r *recovery) eachLabel(d *draft, visit func(insn int) bool) (insn int, ok bool) {
	for _, pi := range d.pieces {
		p, at := &r.code.pieces[pi], r.code.pieces[pi].Lo
		if r.routineAt(p.first) >= 0 {
			at++
		}
		for ; ; at++ {
			var ok bool
			if at, ok = r.file.references.next(at, p.Hi); !ok {
				break
			}
			if i := r.code.find(at); i >= 0 && visit(i) {
				return i, true
			}
		}
	}
	return 0, false
}

// receiver returns an instruction that only a jump through a pointer can lead to, from elsewhere:
// the receiver of a non-local goto. What other ways lead to, too, or what pads the space before an
// aligned block, is mentioned by chance: a number that looks like its address.
func (r *recovery) receiver(d *draft) (insn int, ok bool) {
	return r.label(d, d.tables,
		func(i int) bool { return r.blocks.marks[i]&reached == 0 && !r.code.insns[i].IsLongNoOp() })
}

package draft

import (
	"iter"
	"slices"

	"wpptrace/loader/cfg/jumptable"
)

// findLabels finds the instructions amidst a routine whose address another routine takes: a nested
// function of GNU C leaves its parent's callees by a jump there, as an exception leaves them for a
// landing pad.
func (r *Program) findLabels() {
	seen := map[int]bool{}
	for i := range r.Code.Insns {
		if taken := r.File.TakenAddress(i); taken != 0 {
			r.addLabel(seen, r.Code.Pieces[r.Code.PieceOf[i]].Routine, r.Code.Find(taken))
		}
	}
}

// addLabel notes that a routine takes the address of an instruction, or of none (-1).
func (r *Program) addLabel(seen map[int]bool, by, to int) {
	if to < 0 || r.RoutineAt(to) >= 0 {
		return
	}
	if d := r.RoutineOf(to); d.ID != by && !seen[to] {
		seen[to] = true
		d.labels = append(d.labels, to)
	}
}

// linkLabels makes each label a landing pad of every call.
func (bd *Builder) linkLabels(d *Routine) {
	switch {
	case len(d.labels) == 0:
		return
	case len(d.labels) > jumptable.MaxLabels:
		d.Leave("too many places in its middle that other routines may jump to")
		return
	}
	labels := make([]int, len(d.labels))
	for k, i := range d.labels {
		labels[k] = bd.BlockOf(i)
	}
	d.Pads = append(d.Pads, labels...)
	for b := range d.Blocks {
		switch bl := &d.Blocks[b]; {
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

// label returns an instruction of the routine, other than where one is entered, that anything but
// the tables found mentions: a jump through a pointer, from this routine or from elsewhere, may go
// there. Only those for which is holds count.
func (r *Program) label(d *Routine, found map[int]*jumptable.Table,
	is func(insn int) bool) (insn int, ok bool) {
	known := jumptable.Targets(found)
	for i := range r.labelsOf(d) {
		if !known[i] && is(i) {
			return i, true
		}
	}
	return 0, false
}

// labelsOf are the instructions of the routine, other than where one is entered, that anything
// mentions.
func (r *Program) labelsOf(d *Routine) iter.Seq[int] {
	return func(yield func(insn int) bool) {
		for _, pi := range d.Pieces {
			p, at := &r.Code.Pieces[pi], r.Code.Pieces[pi].Lo
			if r.RoutineAt(p.First) >= 0 {
				at++
			}
			for ; ; at++ {
				var ok bool
				if at, ok = r.File.References.Next(at, p.Hi); !ok {
					break
				}
				if i := r.Code.Find(at); i >= 0 && !yield(i) {
					return
				}
			}
		}
	}
}

// Receiver returns an instruction that only a jump through a pointer can lead to, from elsewhere:
// the receiver of a non-local goto. What other ways lead to, too, or what pads the space before an
// aligned block, is mentioned by chance: a number that looks like its address.
func (r *Program) Receiver(d *Routine) (insn int, ok bool) {
	return r.label(d, d.Tables,
		func(i int) bool { return r.Blocks.marks[i]&reached == 0 && !r.Code.Insns[i].IsLongNoOp() })
}

package cfg

import (
	"slices"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// findLabels finds the instructions amidst a routine whose address another routine takes: a nested
// function of GNU C leaves its parent's callees by a jump there, as an exception leaves them for a
// landing pad.
func (r *recovery) findLabels() {
	seen := map[int]bool{}
	for i := range r.insns {
		taken := r.takenAddress(i)
		if taken == 0 {
			continue
		}
		to := r.find(taken)
		if to < 0 || r.routineAt(to) >= 0 {
			continue
		}
		d := r.drafts[r.pieces[r.pieceOf[to]].routine]
		if d.id != r.pieces[r.pieceOf[i]].routine && !seen[to] {
			seen[to] = true
			d.labels = append(d.labels, to)
		}
	}
}

// takenAddress is the address that instruction i puts into a register or into memory, 0 if it does
// nothing of the kind.
func (r *recovery) takenAddress(i int) uint64 {
	q := &r.insns[i]
	switch q.Operation() {
	case x86.Lea:
		if q.IsRIPRelative() {
			_, rm, _ := r.operands(i)
			return uint64(rm.Disp)
		}
	case x86.Mov:
		if !r.im.PIE {
			to, _ := q.AddressImmediate(r.bytes(i))
			return to
		}
	}
	return 0
}

// mostLabels is more labels than any routine has.
const mostLabels = 1024

// linkLabels makes each label a landing pad of every call.
func (r *recovery) linkLabels(d *draft) {
	switch {
	case len(d.labels) == 0:
		return
	case len(d.labels) > mostLabels:
		d.leave("too many places in its middle that other routines may jump to")
		return
	}
	labels := make([]int, len(d.labels))
	for k, i := range d.labels {
		labels[k] = r.blockOf(d, i)
	}
	d.pads = append(d.pads, labels...)
	for b := range d.blocks {
		switch bl := &d.blocks[b]; {
		case !bl.IsCall():
		case len(bl.Pads) == 0:
			bl.Pads = labels // one list for all, which are many: it is not to be changed
		default:
			bl.Pads = union(bl.Pads, labels)
		}
	}
}

// variable finds the labels that the jump which ends block b may lead to where it goes to one of
// several that a register, or a place in a frame that no pointer leads to, was given.
func (s *resolver) variable(b int) *table {
	_, rm, _ := s.operands(s.d.last(b))
	t := &table{check: absint.NoCheck}
	known := !rm.Mem && s.sure.allOrigins(rm.Reg, b, len(s.d.blocks[b].Insns), func(v absint.Value, _ int) bool {
		if v.Form != absint.Constant {
			return false
		}
		to := s.inside(s.d, s.find(uint64(v.Off)))
		if !slices.Contains(t.targets, to) {
			t.targets = append(t.targets, to)
		}
		return to >= 0
	})
	if !known {
		return nil
	}
	slices.Sort(t.targets)
	return t
}

// given finds the labels that the jump which ends block b may lead to where it goes to one that memory, or who called the
// routine, holds, as in code that was translated to the labels of its operations. From within a frame it goes to no other
// routine, and to any of its own that something names.
func (s *resolver) given(b int) *table {
	if s.isFrameless(s.d.last(b)) || !s.isGiven(b) {
		return nil
	}
	targets := s.ownLabels()
	if len(targets) < minEntries || s.steps.Load() <= 0 {
		return nil
	}
	s.steps.Add(-int64(len(targets)))
	return &table{targets: targets, given: true, loose: true, check: absint.NoCheck}
}

// ownLabels returns all labels of the routine, none if not all may be known: where distances are added to one; where the
// routine keeps its stack pointer, it may have named one for jumps from elsewhere; and in a part that may be the routine's,
// data may have another. Shared.
func (s *resolver) ownLabels() []int {
	if s.own == nil {
		s.own = []int{}
		isElsewhere := func(k int) bool { return s.pieces[k].routine != s.d.id }
		if !s.keepsStack() && !slices.ContainsFunc(s.pointedParts, isElsewhere) && (!s.addsToLabels() || s.onlyStoresLabels()) {
			s.own = append(s.own, s.withLabels(nil)...)
		}
	}
	return s.own
}

// isGiven says whether the address that the jump which ends block b goes to is a whole pointer from elsewhere.
func (s *resolver) isGiven(b int) bool {
	_, rm, _ := s.operands(s.d.last(b))
	if rm.Mem {
		return s.isPointer(s.run([]int{b}, s.jumpOperand(b)))
	}
	return s.sure.allOrigins(rm.Reg, b, len(s.d.blocks[b].Insns), func(v absint.Value, block int) bool { return block == outside || s.isPointer(v) })
}

// keepsStack says whether the routine stores its stack pointer, as compilers do it for those that jump into it from elsewhere.
func (s *resolver) keepsStack() bool {
	for b := range s.d.blocks {
		for k := range s.d.blocks[b].Insns {
			if !s.d.blocks[b].Insns[k].IsMemory() {
				continue
			}
			e := s.effects(int(s.d.first[b]) + k)
			if e.Operation == x86.Mov && e.Src.Reg == x86.RSP && e.Dst.Size > 1 {
				return true
			}
		}
	}
	return false
}

// onlyStoresLabels says whether code of the routine that takes the address of a label stores it at once: what is added to
// something then is added to no label, unless it is one that was loaded again.
func (s *resolver) onlyStoresLabels() bool {
	for b := range s.d.blocks {
		insns := s.d.blocks[b].Insns
		for k := range insns {
			i := int(s.d.first[b]) + k
			to := s.inside(s.d, s.find(s.takenAddress(i)))
			if to < 0 || to == s.d.entry {
				continue
			}
			takes := s.effects(i)
			if takes.Operation == x86.Mov && takes.Dst.Mem {
				continue
			}
			if k+1 == len(insns) {
				return false
			}
			if e := s.effects(i + 1); e.Operation != x86.Mov || !e.Dst.Mem || e.Src.Reg != takes.Dst.Reg {
				return false
			}
		}
	}
	return true
}

// findPointedParts finds the cold parts that data leads into and that do not jump back into their routines, so that they may
// be those of others, too.
func (r *recovery) findPointedParts() {
	for k := range r.pieces {
		if p := &r.pieces[k]; isCold(p) && !p.back {
			if _, ok := r.pointedTo.next(p.Lo, p.Hi); ok {
				r.pointedParts = append(r.pointedParts, k)
			}
		}
	}
}

// anyLoose says whether a pointer may be a label that a table found holds as well, at which the
// frame is gone; what lies behind a table or in its holes may be in another that holds labels. Where
// the routine is entered is none.
func (r *recovery) anyLoose(d *draft, found map[int]*table) bool {
	isLabel := func(i int) bool { return i != d.entry && r.isFrameless(i) }
	for _, t := range found {
		if t.loose && slices.ContainsFunc(t.targets, isLabel) || slices.ContainsFunc(t.holes, isLabel) {
			return true
		}
	}
	return false
}

// throughFunctions says whether the jump that ends block b is one through a table that begins with a
// function, as the file has it: functions and labels share no table.
func (s *resolver) throughFunctions(b int) bool {
	v := s.run([]int{b}, s.jumpOperand(b))
	if v.Form != absint.Element || v.Size != 8 {
		return false
	}
	pairs := s.sure.bases(s.rootOf(v.Base, b), root{none: true})
	for _, pair := range pairs {
		if to, ok := s.wordAt(uint64(v.Off)+pair[0], 8, true); !ok || s.routineAt(s.find(to)) < 0 {
			return false
		}
	}
	return len(pairs) > 0
}

// label returns an instruction of the routine, other than where one is entered, that anything but
// the tables found mentions: a jump through a pointer, from this routine or from elsewhere, may go
// there. Only those for which is holds count.
func (r *recovery) label(d *draft, found map[int]*table, is func(insn int) bool) (insn int, ok bool) {
	known := targetsOf(found)
	return r.eachLabel(d, func(i int) bool { return !known[i] && is(i) })
}

// targetsOf are the instructions that some tables lead to.
func targetsOf(found map[int]*table) map[int]bool {
	known := map[int]bool{}
	for _, t := range found {
		for _, to := range slices.Concat(t.targets, t.holes) {
			known[to] = true
		}
	}
	return known
}

// eachLabel visits the instructions of the routine, other than where one is entered, that anything
// mentions, and returns the first for which the visitor answers true.
func (r *recovery) eachLabel(d *draft, visit func(insn int) bool) (insn int, ok bool) {
	for _, pi := range d.pieces {
		p, at := &r.pieces[pi], r.pieces[pi].Lo
		if r.routineAt(p.first) >= 0 {
			at++
		}
		for ; ; at++ {
			var ok bool
			if at, ok = r.mentions.next(at, p.Hi); !ok {
				break
			}
			if i := r.find(at); i >= 0 && visit(i) {
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
	return r.label(d, d.tables, func(i int) bool { return r.marks[i]&reached == 0 && !r.insns[i].IsLongNoOp() })
}

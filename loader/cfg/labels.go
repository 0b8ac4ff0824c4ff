package cfg

import (
	"slices"

	"wpptrace/loader/x86"
)

// findLabels finds the instructions amidst a routine whose address another routine takes: a nested
// function of GNU C leaves its parent's callees by a jump there, as an exception leaves them for a
// landing pad.
func (r *recovery) findLabels() {
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
		if d.id != r.pieces[r.pieceOf[i]].routine && !slices.Contains(d.labels, to) {
			d.labels = append(d.labels, to)
		}
	}
}

// takenAddress is the address that instruction i puts into a register or into memory, 0 if it does
// nothing of the kind.
func (r *recovery) takenAddress(i int) uint64 {
	q := &r.insns[i]
	const lea, movImmediate, movToRegister = 0x8d, 0xc7, 0xb8
	switch {
	case q.Map != 0:
	case q.Op == lea && isRIPRelative(&q.Inst):
		_, rm, _ := r.operands(i)
		return uint64(rm.Disp)
	case (q.Op == movImmediate || q.Op&0xf8 == movToRegister) && q.Kind == x86.Other && !r.im.PIE:
		if n := addressImmediate(&q.Inst); n > 0 {
			return immediate(r.bytes(i), n)
		}
	}
	return 0
}

// linkLabels makes each label a landing pad of every call.
func (r *recovery) linkLabels(d *draft) {
	for _, i := range d.labels {
		to := r.blockOf(d, i)
		d.pads = append(d.pads, to)
		for b := range d.blocks {
			if bl := &d.blocks[b]; isCall(bl) && !slices.Contains(bl.Pads, to) {
				bl.Pads = append(bl.Pads, to)
			}
		}
	}
}

// variable finds the labels that the jump which ends block b may lead to where it goes to one of
// several that a register was given. What lies in the frame may have been changed through a
// pointer.
func (s *resolver) variable(b int) *table {
	_, rm, _ := s.operands(s.d.last(b))
	t := &table{check: noCheck}
	s.inRegisters = true
	known := !rm.Mem && s.allOrigins(rm.Reg, b, len(s.d.blocks[b].Insns), func(v value, written bool) bool {
		if v.form != constant {
			return false
		}
		to := s.inside(s.d, s.find(uint64(v.off)))
		if !slices.Contains(t.targets, to) {
			t.targets = append(t.targets, to)
		}
		return to >= 0
	})
	s.inRegisters = false
	if !known {
		return nil
	}
	slices.Sort(t.targets)
	return t
}

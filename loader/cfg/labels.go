package cfg

import (
	"slices"

	"wpptrace/loader/x86"
)

// findLabels finds the instructions amidst a routine whose address another routine takes: a nested function of GNU C leaves its parent's callees by a jump
// there, as an exception leaves them for a landing pad.
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

// takenAddress is the address that instruction i puts into a register or into memory, 0 if it does nothing of the kind.
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

// variable finds the labels that the jump which ends block b may lead to where it goes to one of several that are assigned to a variable.
func (s *resolver) variable(b int) *table {
	_, rm, _ := s.operands(s.d.last(b))
	t := &table{check: noCheck}
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
	if !known {
		return nil
	}
	slices.Sort(t.targets)
	return t
}

// threaded finds the labels that the indirect jump which ends block b may lead to where it goes to a pointer of which nothing is known, as in direct threaded
// code (Bell 1973): those whose addresses are taken. The frame stands yet, so that it cannot leave the routine but by a jump that has another frame restored.
func (s *resolver) threaded(b int) *table {
	jump := s.d.last(b)
	if s.isFrameless(jump) || s.savesStackPointer() || !s.jumpsToPointer(b) {
		return nil
	}
	t := &table{threaded: true, check: noCheck}
	frame := s.frameAt(jump)
	for _, pi := range s.d.pieces {
		p := &s.pieces[pi]
		for at, ok := s.mentions.next(p.Lo, p.Hi); ok; at, ok = s.mentions.next(at+1, p.Hi) {
			if i := s.find(at); i >= 0 && s.frameAt(i) == frame {
				t.targets = append(t.targets, i)
			}
		}
	}
	if len(t.targets) == 0 {
		return nil
	}
	return t
}

// refuseThreads gives up the jumps of threaded code where nothing leads to some code of the routine: the addresses of more labels than those that are taken
// may have been computed.
func (r *recovery) refuseThreads(d *draft) (some bool) {
	for i, t := range d.tables {
		if t.threaded && !r.reachesAll(d) {
			d.refuse(i)
			delete(d.tables, i)
			some = true
		}
	}
	return some
}

// reachesAll says whether control flow reaches every instruction of the routine, but for what fills the space before aligned ones.
func (r *recovery) reachesAll(d *draft) bool {
	const nop, int3 = 0x90, 0xcc
	for _, pi := range d.pieces {
		for i := r.pieces[pi].first; i < r.pieces[pi].last; i++ {
			q := &r.insns[i]
			if r.marks[i]&reached == 0 && !isPadding(&q.Inst) && !(q.Map == 0 && (q.Op == nop || q.Op == int3)) {
				return false
			}
		}
	}
	return true
}

// jumpsToPointer says whether the target of the jump that ends block b is a pointer which was stored or passed as a whole, or a constant.
func (s *resolver) jumpsToPointer(b int) bool {
	_, rm, _ := s.operands(s.d.last(b))
	return rm.Mem || s.allOrigins(rm.Reg, b, len(s.d.blocks[b].Insns), func(v value, written bool) bool {
		return !written || v.form == constant || s.isPointer(v)
	})
}

// savesStackPointer says whether the routine hands out its stack pointer: __builtin_setjmp does, for whoever jumps to its label.
func (s *resolver) savesStackPointer() bool {
	const store, load = 0x89, 0x8b
	return slices.ContainsFunc(s.d.blocks, func(bl Block) bool {
		return slices.ContainsFunc(bl.Insns, func(q Insn) bool {
			if q.Map != 0 || q.Op != store && q.Op != load {
				return false
			}
			i := s.find(q.Addr)
			reg, rm, _ := s.operands(i)
			from, to := reg, rm.Reg
			if q.Op == load {
				from, to = to, from
			}
			return from == rsp && to != rbp
		})
	})
}

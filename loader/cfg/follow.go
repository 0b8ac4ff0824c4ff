package cfg

import (
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// effects are what an instruction of the routine does.
func (r *Routine) effects(q *Insn) x86.Effects { return q.Effects(r.Code(q), q.End()) }

// Effects returns what the instructions of block b do to registers from one up to another, not
// including, for those who follow it again and again. Cost: ten times that of applying them.
func (r *Routine) Effects(b, from, to int) []absint.Effect {
	list := make([]absint.Effect, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, absint.EffectOf(r.effects(&r.Blocks[b].Insns[i])))
	}
	return list
}

// Follow runs the instructions of block b from one up to another, not including: after it, regs are
// what the registers hold in terms of the same point as before.
func (r *Routine) Follow(regs *absint.Registers, b, from, to int) {
	regs.Apply(r.Effects(b, from, to))
}

// FollowRounds runs block b, which jumps to itself, nobody knows how often.
func (r *Routine) FollowRounds(regs *absint.Registers, b int) {
	regs.ApplyRounds(r.Effects(b, 0, len(r.Blocks[b].Insns)))
}

// Before is what registers hold at the beginning of block b, in terms of what they hold before its
// instruction k.
func (r *Routine) Before(b, k int) absint.Registers { return absint.Before(r.Effects(b, 0, k)) }

// Counters returns what counts the rounds of block b, if it ends in a conditional jump to itself:
// first those that give the trip count before the loop begins, then those that do not wrap around.
func (r *Routine) Counters(b int) []absint.Counter {
	block := &r.Blocks[b]
	if block.End != Jcc || (block.Succ[0] == b) == (block.Succ[1] == b) {
		return nil
	}
	return absint.Counters(r.Effects(b, 0, len(block.Insns)), block.Succ[0] == b)
}

// Conditions returns by block what the jump that ends it asks; nil for one that asks for anything
// else, or is none. None asks for a place in the frame in a routine that takes an address in it:
// then others may know the place. Cost: the length of the routine.
func (r *Routine) Conditions() []*absint.Condition {
	list := make([]*absint.Condition, len(r.Blocks))
	inFrame := false
	for b := range r.Blocks {
		if r.mayAsk(b) {
			list[b] = r.condition(b)
			inFrame = inFrame || list[b] != nil && list[b].Place.Mem
		}
	}
	if inFrame && !r.hidesFrame() {
		for b, c := range list {
			if c != nil && c.Place.Mem {
				list[b] = nil
			}
		}
	}
	return list
}

// mayAsk is a quick look whether a block ends in a conditional jump that goes by a comparison with
// a constant.
func (r *Routine) mayAsk(b int) bool {
	insns := r.Blocks[b].Insns
	last := len(insns) - 1
	if r.Blocks[b].End != Jcc || insns[last].Kind != x86.Jcc {
		return false
	}
	for i := last - 1; i >= 0; i-- {
		if in := &insns[i].Inst; !in.KeepsFlags() {
			switch in.Operation() {
			case x86.Add, x86.Or, x86.And, x86.Sub, x86.Xor, x86.Cmp:
				return in.HasImmediate()
			case x86.Test:
				return true
			}
			return false
		}
	}
	return false
}

func (r *Routine) condition(b int) *absint.Condition {
	block := &r.Blocks[b]
	last := len(block.Insns) - 1
	before := func(yield func(x86.Effects) bool) {
		for i := range block.Insns[:last] {
			if !yield(r.effects(&block.Insns[i])) {
				return
			}
		}
	}
	c := absint.ConditionOf(before, block.Insns[last].Condition())
	if c == nil || !r.HasPlace(c.Place, block.Lo) {
		return nil
	}
	return c
}

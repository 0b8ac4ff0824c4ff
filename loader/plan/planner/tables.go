package planner

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// tellTable lets the bounds check of a switch tell its case, where the index is known there.
func (r *routine) tellTable(b int) {
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 || len(t.Targets) == 0 {
		return
	}
	check := &r.Blocks[t.Check]
	p := &r.probed[t.Check]
	if !p.on || !p.edges || p.tells != nil || check.Succ[0] == check.Succ[1] {
		return
	}
	for i, next := range check.Succ {
		if r.leadsTo(next, b) {
			p.tells = &plan.Capture{Kind: plan.SwitchIndex, Table: b, Operand: t.Index, Bias: t.Bias, Taken: i == 0}
		}
	}
}

// leadsTo reports whether control runs from block b to the switch, past no other way and no other
// word.
func (r *routine) leadsTo(b, table int) bool {
	for range r.Blocks {
		if b < 0 || r.probed[b].on {
			return false
		}
		if b == table {
			return true
		}
		if len(r.Blocks[b].Succ) != 1 {
			return false
		}
		b = r.Blocks[b].Succ[0]
	}
	return false
}

// tellJump reads the switch at its jump, which has to be single-stepped.
func (r *routine) tellJump(b int) bool {
	block := &r.Blocks[b]
	i := len(block.Insns) - 1
	q := &block.Insns[i]
	if q.Class(r.Code(q)) != x86.Stepped || !r.hasCFA(q.Addr) {
		return false
	}
	_, operand, _ := q.Operands(r.Code(q), q.Addr+uint64(q.Len))
	operand.Size = 8
	r.probed[b] = probe{on: true, stepped: true, insn: int32(i), edges: true, tells: &plan.Capture{Kind: plan.SwitchTarget, Table: b, Operand: operand}}
	return true
}

// told reports whether some word tells the way out of the switch at b.
func (r *routine) told(b int) bool {
	if r.probed[b].tells != nil && r.probed[b].tells.Kind == plan.SwitchTarget {
		return true
	}
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 {
		return false
	}
	c := r.probed[t.Check].tells
	if c == nil || c.Table != b {
		return false
	}
	next := r.Blocks[t.Check].Succ[1]
	if c.Taken {
		next = r.Blocks[t.Check].Succ[0]
	}
	return r.leadsTo(next, b)
}

// between lists the blocks on the ways from bounds checks to their switches.
func (r *routine) between() (list []int) {
	for b := range r.Blocks {
		if r.mayTell(b) {
			list = append(list, r.chain(b)...)
		}
	}
	return list
}

// mayTell reports whether the bounds check of the switch at b could tell its case.
func (r *routine) mayTell(b int) bool {
	if !r.switches[b] {
		return false
	}
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 || len(t.Targets) == 0 {
		return false
	}
	p, ok := r.seat(t.Check)
	return ok && p.edges && r.chain(b) != nil
}

// chain lists the blocks from the bounds check of the switch at b, that not included, to the
// switch: nil if other ways part or join.
func (r *routine) chain(b int) []int {
	t := r.Blocks[b].Table
	check := &r.Blocks[t.Check]
	if check.End != cfg.Jcc || check.Succ[0] == check.Succ[1] {
		return nil
	}
	for _, next := range check.Succ {
		var way []int
		for v := next; v >= 0 && len(way) < len(r.Blocks); v = r.Blocks[v].Succ[0] {
			way = append(way, v)
			if v == b {
				return way
			}
			if len(r.Blocks[v].Succ) != 1 {
				break
			}
		}
	}
	return nil
}

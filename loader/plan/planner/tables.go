package planner

import (
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// switches are the jumps through tables of a routine, and which events decide where they go.
type switches struct {
	r  *routine
	is []bool // by block: it ends in one
}

func newSwitches(r *routine) switches {
	w := switches{r, make([]bool, len(r.Blocks))}
	for b := range w.is {
		w.is[b] = r.Blocks[b].End == cfg.Table
	}
	return w
}

// known reports whether block b ends in a switch whose way some event decides.
func (w *switches) known(b int) bool { return w.is[b] && w.isKnown(b) }

// captureIndex lets the bounds check of a switch capture its index, where the index is known there.
func (w *switches) captureIndex(b int) {
	r := w.r
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 || len(t.Targets) == 0 {
		return
	}
	check := &r.Blocks[t.Check]
	p := &r.probed[t.Check]
	if !p.on || !p.edges || p.capture != nil || check.Succ[0] == check.Succ[1] {
		return
	}
	for i, next := range check.Succ {
		if w.leadsTo(next, b) {
			p.capture = &plan.Capture{Kind: plan.SwitchIndex, Table: b, Operand: t.Index,
				Bias: t.Bias, Taken: i == 0}
		}
	}
}

// leadsTo reports whether control runs from block b to the switch, past no other way and no other
// event.
func (w *switches) leadsTo(b, table int) bool {
	r := w.r
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

// captureTarget reads the switch at its jump, which has to be single-stepped.
func (w *switches) captureTarget(b int) bool {
	r := w.r
	block := &r.Blocks[b]
	i := len(block.Insns) - 1
	q := &block.Insns[i]
	if q.Class(r.Code(q)) != x86.Stepped || !hasCFA(r.Routine, q.Addr) {
		return false
	}
	_, operand, _ := q.Operands(r.Code(q), q.Addr+uint64(q.Len))
	operand.Size = 8
	r.probed[b] = probe{on: true, stepped: true, insn: int32(i), edges: true,
		capture: &plan.Capture{Kind: plan.SwitchTarget, Table: b, Operand: operand}}
	return true
}

// isKnown reports whether some event decides the way out of the switch at b.
func (w *switches) isKnown(b int) bool {
	r := w.r
	if r.probed[b].capture != nil && r.probed[b].capture.Kind == plan.SwitchTarget {
		return true
	}
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 {
		return false
	}
	c := r.probed[t.Check].capture
	if c == nil || c.Table != b {
		return false
	}
	next := r.Blocks[t.Check].Succ[1]
	if c.Taken {
		next = r.Blocks[t.Check].Succ[0]
	}
	return w.leadsTo(next, b)
}

// between lists the blocks on the ways from bounds checks to their switches.
func (w *switches) between() (list []int) {
	r := w.r
	for b := range r.Blocks {
		if w.mayBeKnown(b) {
			list = append(list, w.chain(b)...)
		}
	}
	return list
}

// mayBeKnown reports whether the bounds check of the switch at b could capture its index.
func (w *switches) mayBeKnown(b int) bool {
	r := w.r
	if !w.is[b] {
		return false
	}
	t := r.Blocks[b].Table
	if t == nil || t.Check < 0 || len(t.Targets) == 0 {
		return false
	}
	p, ok := r.costs.point(t.Check)
	return ok && p.edges && w.chain(b) != nil
}

// chain lists the blocks from the bounds check of the switch at b, that not included, to the
// switch: nil if other ways part or join.
func (w *switches) chain(b int) []int {
	r := w.r
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

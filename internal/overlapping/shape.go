package overlapping

import (
	"fmt"
	"slices"

	"wpptrace/compress/wpp/overlapped"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths/overlap"
	"wpptrace/loader/plan"
)

// Shape returns what of a routine its overlapping paths depend on. number is the routine's index in
// the snapshot; callee gives that of the routine that a block calls or tail-jumps to, and no other
// one; below 0: that is not known, or it is not traced. It fails for a routine whose paths have no
// numbers. Cost: that of overlap.Of.
func Shape(r *cfg.Routine, number int, callee func(block int) int) (*overlapped.Shape, error) {
	g, err := overlap.Of(r)
	if err != nil {
		return nil, err
	}
	s := &overlapped.Shape{Routine: number}
	for b := range r.Blocks {
		if g.IsPredicate(b) {
			s.Predicates = append(s.Predicates, b)
		}
		if to := callee(b); to >= 0 {
			s.Calls = append(s.Calls, overlapped.Call{Block: b, Routine: to})
		}
	}
	for _, l := range g.Loops() {
		s.Loops = append(s.Loops, overlapped.Loop{Head: l.Head, Blocks: l.Blocks,
			LeftOut: l.LeftOut})
	}
	return s, nil
}

// ShapeIn returns the shape of a routine of a program. index gives a routine of the program its
// index in the snapshot; below 0: it is not traced.
func ShapeIn(p *cfg.Program, r *cfg.Routine, index func(*cfg.Routine) int) (*overlapped.Shape,
	error) {
	return Shape(r, index(r), func(block int) int {
		if to := calleeOf(p, r, block); to != nil {
			return index(to)
		}
		return -1
	})
}

// calleeOf returns the routine that a block calls or tail-jumps to, and no other one; nil: that is
// not known, or it ends otherwise.
func calleeOf(p *cfg.Program, r *cfg.Routine, block int) *cfg.Routine {
	b := &r.Blocks[block]
	switch b.End {
	case cfg.Call, cfg.CallInd, cfg.Tail:
	case cfg.Jcc:
		if !slices.Contains(b.Succ, cfg.Exit) {
			return nil
		}
	default:
		return nil
	}
	to, _ := p.Callee(r, block)
	return to
}

// ShapeOf returns the shape of a routine of a plan, whose numbers are those of a snapshot of it. It
// fails for a number that is none of these, and as Shape does.
func ShapeOf(p *plan.Plan, routine int) (*overlapped.Shape, error) {
	part, first := partOf(p, routine)
	if part == nil {
		return nil, fmt.Errorf("shape of routine %d: the plan has %d", routine, first)
	}
	return ShapeIn(part.Program, part.Routines[routine-first].Routine, func(r *cfg.Routine) int {
		if of := part.Routines[r.ID]; of.Traced() {
			return of.ID
		}
		return -1
	})
}

// partOf returns the part that has a routine of a plan, and the number of the first one there; nil:
// the plan does not have it, but so many.
func partOf(p *plan.Plan, routine int) (part *plan.Part, first int) {
	for i := range p.Parts {
		if routine-first < len(p.Parts[i].Routines) {
			return &p.Parts[i], first
		}
		first += len(p.Parts[i].Routines)
	}
	return nil, first
}

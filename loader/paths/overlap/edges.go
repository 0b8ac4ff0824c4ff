package overlap

import (
	"cmp"
	"slices"
)

// A Class says whether an edge belongs to the overlapping graph (section 2.3).
type Class uint8

// The classes of edges.
const (
	Definitely    Class = iota // all that get to it go on along it: DI
	Possibly                   // those that have passed few predicates go on along it: PI
	DefinitelyNot              // all that get to it have ended: DNI
)

// An Edge leads between two blocks of the part of a routine in which extensions run.
type Edge struct {
	From, To int
	Class    Class
}

// Edges returns the edges that paths from the start on go along, with their classes, ordered by
// their blocks. Cost: the length of the routine.
func (x *Extensions) Edges() []Edge {
	t := x.table
	type passed struct{ least, most int } // predicates, up to the beginning of a block
	at := map[int]passed{x.Start: {}}
	var edges []Edge
	for i := len(t.g.order) - 1; i >= 0; i-- {
		b := t.g.order[i]
		p, reached := at[b]
		if !reached {
			continue
		}
		if t.g.predicates[b] {
			p.least, p.most = p.least+1, p.most+1
		}
		for _, to := range t.onward(b) {
			e := Edge{b, to, Possibly}
			switch {
			case p.most <= t.degree:
				e.Class = Definitely
			case p.least > t.degree:
				e.Class = DefinitelyNot
			}
			edges = append(edges, e)
			next, again := at[to]
			if !again {
				next = p
			}
			at[to] = passed{min(next.least, p.least), max(next.most, p.most)}
		}
	}
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return edges
}

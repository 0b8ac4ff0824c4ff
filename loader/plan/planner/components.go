package planner

import "wpptrace/loader/plan/planner/circles"

// A callWalk finds circles of a plan's routines, in one graph after the other.
type callWalk struct {
	walk     *circles.Walk
	routines []*routine // of the plan, by ID
}

func newCallWalk(routines []*routine) *callWalk {
	return &callWalk{circles.NewWalk(len(routines)), routines}
}

// circles returns the IDs of the traced routines that may come to themselves.
func (w *callWalk) circles(graph callGraph) [][]int { return w.walk.Circles(w.successors(graph)) }

// successors is a graph from those routines that are traced, by ID: one that is no more is about to
// be planned around.
func (w *callWalk) successors(graph callGraph) circles.Successors {
	return func(list []int, node int) []int {
		r := w.routines[node]
		if !r.traced() {
			return list
		}
		for _, b := range r.calls.leads {
			if t := graph(r, b); t != nil {
				list = append(list, t.ID)
			}
		}
		return list
	}
}

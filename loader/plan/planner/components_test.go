package planner

import (
	"fmt"
	"testing"

	"wpptrace/loader/cfg"
)

// TestCirclesOfTracedRoutines: a routine that is left out is in none.
func TestCirclesOfTracedRoutines(t *testing.T) {
	leads := [][]int{{1}, {0, 2}, {1}, {3}, {3}} // by routine: those that it leads to
	for _, c := range []struct {
		leftOut []int
		circles string
	}{
		{nil, "[[0 1 2] [3]]"}, {[]int{2, 4}, "[[0 1] [3]]"}, {[]int{1, 3}, "[]"},
		{[]int{0, 1, 2, 3, 4}, "[]"},
	} {
		routines := make([]*routine, len(leads))
		for i := range routines {
			routines[i] = &routine{Routine: &cfg.Routine{ID: i}}
			for k := range leads[i] {
				routines[i].calls.leads = append(routines[i].calls.leads, k)
			}
		}
		for _, i := range c.leftOut {
			routines[i].leftOut = "for a test"
		}
		graph := func(r *routine, b int) *routine { return routines[leads[r.ID][b]] }
		circles := newCallWalk(routines).circles(graph)
		if got := fmt.Sprint(circles); got != c.circles {
			t.Errorf("without %v: circles %s, want %s", c.leftOut, got, c.circles)
		}
	}
}

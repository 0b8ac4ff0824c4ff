package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/loader/cfg"
)

// edges say which routine leads to which, by ID.
type edges [][]bool

func drawEdges(t *rapid.T, routines []*routine) edges {
	e := make(edges, len(routines))
	density := rapid.IntRange(1, 6).Draw(t, "density")
	for from := range e {
		e[from] = make([]bool, len(routines))
		for to, r := range routines {
			e[from][to] = r.traced() && rapid.IntRange(1, density).Draw(t, "leads") == 1
		}
	}
	return e
}

// closure says which routine is come to from which that is traced, by one edge or more.
func (e edges) closure(routines []*routine) edges {
	all := make(edges, len(e))
	for from := range e {
		all[from] = make([]bool, len(e))
		if routines[from].traced() {
			copy(all[from], e[from])
		}
	}
	for by := range e {
		for from := range e {
			for to := range e {
				all[from][to] = all[from][to] || all[from][by] && all[by][to]
			}
		}
	}
	return all
}

func ids(components [][]*routine) (list [][]int) {
	for _, c := range components {
		var numbers []int
		for _, r := range c {
			numbers = append(numbers, r.ID)
		}
		list = append(list, numbers)
	}
	return list
}

// TestComponents compares one search after the other of the same walk with the definition, and
// looks whether what earlier ones found is still there.
func TestComponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		routines := make([]*routine, rapid.IntRange(1, 9).Draw(t, "routines"))
		for i := range routines {
			routines[i] = &routine{Routine: &cfg.Routine{ID: i}}
			for to := range routines {
				routines[i].calls.leads = append(routines[i].calls.leads, to)
			}
			if rapid.IntRange(1, 8).Draw(t, "left out") == 1 {
				routines[i].leftOut = "for a test"
			}
		}
		w := newComponentWalk(routines)
		var found [][][]*routine
		var numbers [][][]int
		for range 3 {
			e := drawEdges(t, routines)
			roots := slices.DeleteFunc(slices.Clone(routines),
				func(*routine) bool { return rapid.Bool().Draw(t, "no root") })
			graph := func(r *routine, b int) *routine {
				if e[r.ID][b] {
					return routines[b]
				}
				return nil
			}
			checkComponents(t, w.components(roots, graph), routines, roots, e)
			circles := w.circles(roots, graph)
			found, numbers = append(found, circles), append(numbers, ids(circles))
		}
		for i := range found {
			if diff := cmp.Diff(numbers[i], ids(found[i])); diff != "" {
				t.Fatalf("circles that search %d has found are others after the next (-before "+
					"+now):\n%s", i, diff)
			}
		}
	})
}

func checkComponents(t *rapid.T, components []component, routines, roots []*routine, e edges) {
	all := e.closure(routines)
	place := map[int]int{} // by routine: its component
	for i, c := range components {
		for _, r := range c.routines {
			if _, twice := place[r.ID]; twice {
				t.Fatalf("%v: routine %d is in two components", e, r.ID)
			}
			place[r.ID] = i
		}
		if first := c.routines[0].ID; c.circle != all[first][first] {
			t.Fatalf("%v: the component of %d is a circle: %v, want %v", e, first, c.circle,
				!c.circle)
		}
	}
	for a := range routines {
		isRoot := func(r *routine) bool { return r.traced() && (r.ID == a || all[r.ID][a]) }
		if _, got := place[a]; got != slices.ContainsFunc(roots, isRoot) {
			t.Fatalf("%v: routine %d is in a component: %v, want %v", e, a, got, !got)
		}
		for b := range routines {
			i, comes := place[a]
			k, toIt := place[b]
			switch one := a == b || all[a][b] && all[b][a]; {
			case !comes || !toIt:
			case one != (i == k):
				t.Fatalf("%v: routines %d and %d are in one component: %v, want %v", e, a, b,
					i == k, one)
			case all[a][b] && k > i:
				t.Fatalf("%v: the component of %d comes before that of %d, which it leads to", e, a,
					b)
			}
		}
	}
}

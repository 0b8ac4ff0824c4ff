package circles

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// edges say which node leads to which.
type edges [][]bool

func drawEdges(t *rapid.T, nodes int) edges {
	e := make(edges, nodes)
	density := rapid.IntRange(1, 6).Draw(t, "density")
	for from := range e {
		e[from] = make([]bool, nodes)
		for to := range nodes {
			e[from][to] = rapid.IntRange(1, density).Draw(t, "leads") == 1
		}
	}
	return e
}

func (e edges) successors(list []int, node int) []int {
	for to, leads := range e[node] {
		if leads {
			list = append(list, to)
		}
	}
	return list
}

// closure says which node is come to from which, by one edge or more.
func (e edges) closure() edges {
	all := make(edges, len(e))
	for from := range e {
		all[from] = slices.Clone(e[from])
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

// TestComponents compares one search after the other of the same walk with the definition, and
// looks whether what earlier ones found is still there.
func TestComponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		w := NewWalk(n)
		var found, kept [][][]int
		for range 3 {
			e := drawEdges(t, n)
			var roots []int
			for root := range n {
				if rapid.Bool().Draw(t, "root") {
					roots = append(roots, root)
				}
			}
			components := w.components(roots, e.successors)
			check(t, components, roots, e)
			var lists, copies [][]int
			for _, c := range components {
				lists, copies = append(lists, c.Nodes), append(copies, slices.Clone(c.Nodes))
			}
			found, kept = append(found, lists), append(kept, copies)
		}
		if diff := cmp.Diff(kept, found); diff != "" {
			t.Fatalf("what searches have found is changed by the next (-before +now):\n%s", diff)
		}
	})
}

func check(t *rapid.T, components []Component, roots []int, e edges) {
	all := e.closure()
	place := map[int]int{} // by node: its component
	for i, c := range components {
		for _, n := range c.Nodes {
			if _, twice := place[n]; twice {
				t.Fatalf("%v: node %d is in two components", e, n)
			}
			place[n] = i
		}
		if first := c.Nodes[0]; c.Circle != all[first][first] {
			t.Fatalf("%v: the component of %d is a circle: %v, want %v", e, first, c.Circle,
				!c.Circle)
		}
	}
	for a := range e {
		isRoot := func(root int) bool { return root == a || all[root][a] }
		if _, got := place[a]; got != slices.ContainsFunc(roots, isRoot) {
			t.Fatalf("%v: node %d is in a component: %v, want %v", e, a, got, !got)
		}
		for b := range e {
			i, comes := place[a]
			k, toIt := place[b]
			switch one := a == b || all[a][b] && all[b][a]; {
			case !comes || !toIt:
			case one != (i == k):
				t.Fatalf("%v: nodes %d and %d are in one component: %v, want %v", e, a, b, i == k,
					one)
			case all[a][b] && k > i:
				t.Fatalf("%v: the component of %d comes before that of %d, which it leads to", e, a,
					b)
			}
		}
	}
}

// TestBreak: of edges that may be taken off enough are, and a circle that has none is left.
func TestBreak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "nodes")
		e, may := drawEdges(t, n), drawEdges(t, n)
		was, taken := e.closure(), false
		broken := NewWalk(n).Break(e.successors, func(circle []int, in func(int) bool) bool {
			for _, from := range circle {
				for to := range n {
					if in(to) != slices.Contains(circle, to) {
						t.Fatalf("%v: %d is in it: %v", circle, to, in(to))
					}
					if in(to) && e[from][to] && may[from][to] {
						if !was[to][from] {
							t.Fatalf("%d to %d is in no circle", from, to)
						}
						e[from][to], taken = false, true
						return true
					}
				}
			}
			return false
		})
		if broken != taken {
			t.Fatalf("it says %v: %v edges were taken off", broken, taken)
		}
		left := e.closure()
		for from := range e {
			for to := range n {
				if e[from][to] && may[from][to] && left[to][from] {
					t.Fatalf("%v: the circle by %d to %d is left", e, from, to)
				}
			}
		}
	})
}

func ExampleWalk() {
	graph := [][]int{{1}, {2}, {1, 3}, {}} // by node: those that it leads to
	w := NewWalk(len(graph))
	for _, c := range w.Components(func(list []int, node int) []int {
		return append(list, graph[node]...)
	}) {
		fmt.Println(c.Nodes, c.Circle)
	}
	// Output:
	// [3] false
	// [1 2] true
	// [0] false
}

func ExampleForest() {
	f := NewForest(3)
	fmt.Println(f.Join(0, 1), f.Join(1, 2), f.Join(2, 0))
	f.Undo()
	fmt.Println(f.Join(2, 0))
	// Output:
	// true true false
	// true
}

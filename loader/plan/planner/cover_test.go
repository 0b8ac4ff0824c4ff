package planner

import (
	"slices"
	"testing"

	"wpptrace/loader/plan/planner/circles"
)

// TestCoveringIsUsedAgain: what is found for some loops does not depend on those tried before, and
// probes report all edges but a forest.
func TestCoveringIsUsedAgain(t *testing.T) {
	program := recoverFile(t, "/bin/gzip")
	p := find(program, Options{Weights: someWeights(program)})
	tried := 0
	for _, r := range p.routines {
		if !r.traced() {
			continue
		}
		must := mustHaveProbe(r)
		loops := countable(r, must)
		again := newCovering(r, must)
		for _, some := range [][]int{nil, loops, loops[:min(len(loops), 1)], nil} {
			tried += len(some)
			got, want := again.cheapest(some), newCovering(r, must).cheapest(some)
			if !slices.Equal(got, want) {
				t.Errorf("%s without %v: %v, by a covering of its own %v", r.Name, some, got, want)
			}
			checkForest(t, again, got, some)
		}
	}
	if tried < 10 {
		t.Errorf("only %d loops were tried: the test does not test", tried)
	}
}

// checkForest fails if the edges that no probe reports make a circle, but for the loops
// themselves.
func checkForest(t *testing.T, c *covering, on []bool, loops []int) {
	t.Helper()
	reported := make([]bool, len(c.graph.edges))
	for b := range on {
		for _, e := range c.graph.covers.Of(b) {
			reported[e] = reported[e] || on[b]
		}
	}
	f := circles.NewForest(len(on) + 2)
	for i, e := range c.graph.edges {
		if itself := e.from == e.to && slices.Contains(loops, int(e.from)); !reported[i] &&
			!itself &&
			!f.Join(e.from, e.to) && canReport(c, i) {
			t.Errorf("%s: no probe of %v reports %v, which closes a circle", c.r.Name, on, e)
		}
	}
}

// canReport says whether any probe can report an edge.
func canReport(c *covering, e int) bool {
	for b := range c.must {
		if _, ok := c.r.costs.point(b); ok && slices.Contains(c.graph.covers.Of(b), int32(e)) {
			return true
		}
	}
	return false
}

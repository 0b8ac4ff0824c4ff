package chart

import (
	"fmt"
	"slices"
	"strings"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// routes finds the routes of a routine.
type routes struct {
	r        *plan.Routine
	list     []Route
	unlisted bool
}

// findAll follows what runs from the entry, and after each event, by what the event says.
func (w *routes) findAll() {
	r := w.r
	w.follow(Route{From: Entry}, append([]int{r.Entry}, r.Others...), nil)
	for b := range r.Blocks {
		s := r.Site(b)
		if s == nil {
			continue
		}
		if r.Blocks[b].End != cfg.Jcc || s.Condition == plan.NoCondition {
			w.decide(Route{From: b}, s, r.Blocks[b].After())
			continue
		}
		for i := range 2 {
			taken := i == 0
			w.decide(Route{From: b, Outcome: &taken}, s, r.Blocks[b].Succ[i:i+1])
		}
	}
}

// decide follows what runs after the event of a site, for each way that its value may say a switch
// goes.
func (w *routes) decide(from Route, s *plan.Site, next []int) {
	c := s.Capture
	switch {
	case c == nil, c.Kind == plan.LoopRegisters, c.Kind == plan.SwitchIndex &&
		c.Taken != *from.Outcome:
		w.follow(from, next, nil)
	case c.Kind == plan.JumpPlace:
		w.follow(from, next, c.Jumps)
	default:
		targets := slices.Compact(slices.Sorted(slices.Values(w.r.Blocks[c.Table].Succ)))
		for _, to := range targets {
			value := fmt.Sprintf("%d goes to %d", c.Table, to)
			from.Value = &value
			if c.Kind == plan.SwitchTarget {
				w.follow(from, []int{to}, nil)
			} else {
				w.step(from, next[0], func(b int) []int {
					if b == c.Table {
						return []int{to}
					}
					return w.r.Blocks[b].After()
				}, nil)
			}
		}
	}
}

// follow follows what runs from some nodes on. jumps are those whose ways the value of the event
// before decides.
func (w *routes) follow(from Route, nodes, jumps []int) {
	for _, n := range nodes {
		w.step(from, n, func(b int) []int { return w.r.Blocks[b].After() }, jumps)
	}
}

// step takes a route to a node, and on from there.
func (w *routes) step(route Route, node int, after func(b int) []int, jumps []int) {
	r := w.r
	switch {
	case w.unlisted:
		return
	case node == Exit || r.Site(node) != nil:
		w.add(route, node)
		return
	case slices.Contains(route.Blocks, node):
		return // in a plan that is sound, it is a loop whose rounds are counted
	}
	route.Blocks = append(slices.Clone(route.Blocks), node)
	next := after(node)
	if len(next) == 0 {
		w.add(route, Never)
	}
	for _, n := range next {
		on := route
		if slices.Contains(jumps, node) {
			on.Value = sayJump(route.Value, node, n == r.Blocks[node].Succ[0])
		}
		w.step(on, n, after, jumps)
	}
}

// sayJump adds the way of a jump to what a value says.
func sayJump(value *string, block int, taken bool) *string {
	said := []string{fmt.Sprintf("%d is %s", block, outcome(taken))}
	if value != nil {
		said = slices.Insert(said, 0, *value)
	}
	all := strings.Join(said, ", ")
	return &all
}

func outcome(taken bool) string {
	if taken {
		return "taken"
	}
	return "not taken"
}

func (w *routes) add(route Route, to int) {
	if len(w.list) == MostRoutes {
		w.unlisted = true
		return
	}
	route.Number, route.To = len(w.list)+1, to
	if route.Blocks == nil {
		route.Blocks = []int{}
	}
	w.list = append(w.list, route)
}

package verify

import (
	"fmt"
	"maps"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// mostJumps is one jump for each bit of a number.
const mostJumps = 64

// A parting is a block at which ways part without an event, and nothing decides between them.
type parting struct{ block, to int }

// A valueCheck looks at what a value decides behind an event that has captured it.
type valueCheck struct {
	r *routine
	s start
}

// check: the jumps that a value decides depend on that value alone, and no probe-free route on
// which the value may be overwritten leads to them. However it decides them, one probe-free route
// leads to each place. Two routes to a place part at a block that the value does not decide, and
// arrive from different sides of that parting (rule 10: captured places).
func (x valueCheck) check() {
	r, s := x.r, x.s
	reached, spoiled := x.reach(s.nodes, nil), x.reach(s.nodes,
		func(n int) bool { return !r.Keeps(n, s.values.Operand) })
	conditions := r.Conditions()
	decided := newByNode[bool](r)
	if len(s.values.Jumps) > mostJumps {
		r.fault("a captured value decides more jumps than the decoder has bits for",
			r.way(s.event))
		return
	}
	for _, j := range s.values.Jumps {
		switch {
		case j < 0 || j >= len(r.Blocks) || conditions[j] == nil ||
			conditions[j].Place != s.values.Operand:
			r.fault(fmt.Sprintf("the captured value of the block at %x is taken to decide a jump "+
				"that "+
				"depends on something else", r.Blocks[s.event].Lo))
			return
		case r.Counts(j) != nil:
			r.fault("a captured value is taken to decide a loop, of which it decides one round",
				r.way(s.event, j))
			return
		case *spoiled.at(j):
			r.fault("a captured value may be overwritten before a jump that it is taken to decide",
				r.way(s.event, j))
			return
		}
		*decided.at(j) = true
	}
	for n := range r.Blocks {
		if *reached.at(n) && r.kinds[n] == plan.Unknown && r.sites[n] == nil {
			r.fault("external code may call back after an event whose captured value decides jumps",
				r.way(s.event, n))
			return
		}
	}
	x.checkSides(decided)
}

// reach marks what a probe-free route may come to from some nodes, be it in the next activation;
// with behind, only what comes after a block, within the same activation, for which that holds, or
// in a later one.
func (x valueCheck) reach(from []int, behind func(n int) bool) byNode[bool] {
	r := x.r
	type arrival struct {
		node   int
		behind bool
	}
	seen, mark := map[arrival]bool{}, newByNode[bool](r)
	var queue []arrival
	come := func(a arrival) {
		if !seen[a] {
			seen[a] = true
			*mark.at(a.node) = *mark.at(a.node) || a.behind
			queue = append(queue, a)
		}
	}
	for _, n := range from {
		come(arrival{n, behind == nil})
	}
	for ; len(queue) > 0; queue = queue[1:] {
		a := queue[0]
		after := a.behind || a.node == cfg.Exit || behind(a.node)
		for _, n := range x.goesOn(a.node) {
			come(arrival{n, after})
		}
	}
	return mark
}

// goesOn are the nodes that a probe-free route may go on to, the value of no switch known.
func (x valueCheck) goesOn(n int) []int {
	r := x.r
	switch {
	case n == cfg.Exit && r.probeFree:
		return nil
	case n == cfg.Exit:
		return r.entries
	case r.sites[n] != nil:
		return nil
	}
	return r.loopsOnce(n)
}

// checkSides hands on to each node the sides of all partings that it may be come to by, and the
// nodes before it, until there is nothing new.
func (x valueCheck) checkSides(decided byNode[bool]) {
	r, s := x.r, x.s
	sides, before := newByNode[map[int]int](r), newByNode[map[int]bool](r)
	queue := slices.Clone(s.nodes)
	for _, n := range queue {
		*sides.at(n), *before.at(n) = map[int]int{}, map[int]bool{}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		next := x.goesOn(n)
		for _, to := range next {
			changed := *sides.at(to) == nil
			if changed {
				*sides.at(to), *before.at(to) = map[int]int{}, map[int]bool{}
			}
			add := func(p parting) (ok bool) {
				side, met := (*sides.at(to))[p.block]
				(*sides.at(to))[p.block] = p.to
				changed = changed || !met
				return !met || side == p.to
			}
			apart := true
			for block, side := range *sides.at(n) {
				apart = add(parting{block, side}) && apart
			}
			if len(next) > 1 && !*decided.at(n) {
				apart = add(parting{n, to}) && apart
			}
			if !apart {
				r.fault("routes part and meet again without an event, whatever a captured value "+
					"decides",
					r.way(s.event, to))
				return
			}
			for _, b := range append(slices.Collect(maps.Keys(*before.at(n))), n) {
				changed = changed || !(*before.at(to))[b]
				(*before.at(to))[b] = true
			}
			if (*before.at(to))[to] {
				r.fault("a circle without an event, whatever a captured value decides",
					r.way(s.event, to))
				return
			}
			if changed {
				queue = append(queue, to)
			}
		}
	}
}

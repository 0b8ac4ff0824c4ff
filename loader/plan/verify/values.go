package verify

import (
	"fmt"
	"maps"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// mostTold is one jump for each bit of a number.
const mostTold = 64

// A parting is a block at which ways part without an event, and nothing tells which was taken.
type parting struct{ block, to int }

// A valueCheck looks at what a value decides behind an event that has captured it.
type valueCheck struct {
	r *routine
	s start
}

// check: a value tells jumps that ask for nothing else, and that no probe-free route leads to on
// which it may be overwritten. Whichever ways it tells, there is one probe-free route to each
// place: two would part where nothing tells, and then each of both comes to it from another side of
// the same parting (rule 10: captured places).
func (x valueCheck) check() {
	r, s := x.r, x.s
	reached, spoiled := x.reach(s.nodes, nil), x.reach(s.nodes,
		func(n int) bool { return !r.Keeps(n, s.values.Operand) })
	conditions := r.Conditions()
	tells := newByNode[bool](r)
	if len(s.values.Jumps) > mostTold {
		r.fault("a value is said to tell of more jumps than the decoder can tell apart",
			r.way(s.word))
		return
	}
	for _, j := range s.values.Jumps {
		switch {
		case j < 0 || j >= len(r.Blocks) || conditions[j] == nil ||
			conditions[j].Place != s.values.Operand:
			r.fault(fmt.Sprintf("the event of the block at %x is said to tell of a jump that its "+
				"value does not", r.Blocks[s.word].Lo))
			return
		case r.Counts(j) != nil:
			r.fault("a value is said to tell of a loop that it tells of one round of",
				r.way(s.word, j))
			return
		case *spoiled.at(j):
			r.fault("a value tells of a jump that comes after it may be overwritten",
				r.way(s.word, j))
			return
		}
		*tells.at(j) = true
	}
	for n := range r.Blocks {
		if *reached.at(n) && r.kinds[n] == plan.Unknown && r.sites[n] == nil {
			r.fault("code that may call back is entered after an event that tells by a value",
				r.way(s.word, n))
			return
		}
	}
	x.checkSides(tells)
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
	case n == cfg.Exit && r.silent:
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
func (x valueCheck) checkSides(tells byNode[bool]) {
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
			if len(next) > 1 && !*tells.at(n) {
				apart = add(parting{n, to}) && apart
			}
			if !apart {
				r.fault("ways part and meet again without an event, whatever a value tells",
					r.way(s.word, to))
				return
			}
			for _, b := range append(slices.Collect(maps.Keys(*before.at(n))), n) {
				changed = changed || !(*before.at(to))[b]
				(*before.at(to))[b] = true
			}
			if (*before.at(to))[to] {
				r.fault("a circle without an event, whatever a value tells", r.way(s.word, to))
				return
			}
			if changed {
				queue = append(queue, to)
			}
		}
	}
}

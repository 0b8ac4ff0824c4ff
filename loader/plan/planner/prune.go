package planner

import (
	"cmp"
	"slices"

	"wpptrace/internal/grouped"
)

// mostStarts bounds how many places the lack of a probe is looked at from. One that parts the ways
// from more stays.
const mostStarts = 64

// A pruner takes off probes that a forest keeps, yet no two ways need: in a forest no ways meet
// whichever way its edges are followed, and control follows them forward.
type pruner struct {
	was    []probe // by block: before what is tried
	s      *search
	before grouped.Lists // by node, exit last: the nodes that it may follow
	back   *search       // the nodes that lead to a probe without an event
}

// prune takes probes off, the dear ones first, as long as there is one probe-free route from each
// event to the next. Cost: for each probe the probe-free code around it.
func prune(s *search, must []bool) {
	r := s.r
	var order []int
	for b := range r.probed {
		if r.probed[b].on && !must[b] {
			order = append(order, b)
		}
	}
	if len(order) > 0 {
		newPruner(s).takeOff(order)
	}
}

// takeOff takes off the probes of some blocks, the dear ones first, that no two ways need. It
// reports whether there were any.
func (p *pruner) takeOff(order []int) (some bool) {
	r := p.s.r
	slices.SortStableFunc(order,
		func(a, b int) int { return cmp.Compare(r.costs.price(b), r.costs.price(a)) })
	for _, b := range order {
		was := r.probed[b]
		r.probed[b] = probe{}
		if p.waysMeet(b) {
			r.probed[b] = was
		}
		some = some || !r.probed[b].on
	}
	return some
}

func newPruner(s *search) *pruner {
	r := s.r
	p := &pruner{s: s, back: newSearch(r)}
	p.before = grouped.By(len(r.Blocks)+1, func(add func(node, before int32)) {
		for b := range r.Blocks {
			for _, n := range r.onward[b] {
				add(int32(p.index(n)), int32(b))
			}
		}
		if !r.standing.probeFree {
			for _, e := range r.entries {
				add(int32(e), exit)
			}
		}
	})
	return p
}

func (p *pruner) index(node int) int {
	if node == exit {
		return len(p.s.r.Blocks)
	}
	return node
}

// waysMeet reports whether there are two probe-free routes to the same node, from a place that
// leads without an event to block b, which makes no event. It answers true where there are too many
// such places.
func (p *pruner) waysMeet(b int) bool {
	r, s := p.s.r, p.back
	s.reset()
	s.visit(b, origin)
	starts := 0
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if n != exit && slices.Contains(r.entries, n) && p.meet(r.entries) {
			return true
		}
		for _, before := range p.before.Of(p.index(n)) {
			m := int(before)
			if m == exit || !r.probed[m].on && !(r.switches.known(m)) {
				if *s.at(m) == unseen {
					s.visit(m, n)
				}
				continue
			}
			if starts++; starts > mostStarts || p.meetFrom(m, n) {
				return true
			}
		}
	}
	return false
}

// meet reports whether two probe-free routes from any of some nodes lead to the same one.
func (p *pruner) meet(from []int) bool {
	_, _, found := p.s.collide(from)
	return found
}

// meetFrom does so for an event of block b, or the end of a switch, when it goes on to node next.
func (p *pruner) meetFrom(b, next int) (found bool) {
	p.s.r.eachStart(b, func(from []int) {
		found = found || slices.Contains(from, next) && p.meet(from)
	})
	place := p.s.r.capturedPlace(b)
	return found && (place == nil || !p.s.stretch(b, *place).clear)
}

// meetsAfter does so for an event of block b, whatever it goes on to.
func (p *pruner) meetsAfter(b int) bool {
	return slices.ContainsFunc(p.s.r.Blocks[b].After(),
		func(next int) bool { return p.meetFrom(b, next) })
}

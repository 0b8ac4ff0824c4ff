package planner

import (
	"cmp"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

const (
	mostDecided = 60  // jumps that one value may decide: one bit each
	mostStretch = 500 // blocks that may run without an event after an event with a value
)

// A stretch is what may run without an event after an event that captures the value of a place.
type stretch struct {
	nodes   []int // each behind all that it may follow; not all, if there is a circle
	decided []int // the jumps that the value decides
	clear   bool  // whatever the value, there is one way to each node
}

// A mark is what is noted of a node where a stretch is looked for.
type mark struct {
	before    int  // from how many nodes it is come to yet
	met, kept bool // the way has come to it, and the value is still there
	behind    int  // one more than the index of the node that it lies behind; 0: none
}

func (s *search) mark(node int) *mark {
	if s.marks == nil {
		s.marks = make([]mark, len(s.parent))
	}
	return &s.marks[node-exit]
}

// unmark forgets what has been noted of the nodes in the queue.
func (s *search) unmark() {
	for _, n := range s.queue {
		*s.mark(n) = mark{}
	}
}

// stretch finds what may run after the event of block b. Cost: for each jump that is not known,
// what lies behind it.
func (s *search) stretch(b int, place x86.Operand) (t stretch) {
	r := s.r
	s.reset()
	for _, n := range r.Blocks[b].After() {
		s.visit(n, origin)
	}
	starts := len(s.queue)
	defer s.unmark()
	for i := 0; i < len(s.queue) && i < mostStretch; i++ {
		for _, n := range s.after(s.queue[i]) {
			s.mark(n).before++
			if *s.at(n) == unseen {
				s.visit(n, s.queue[i])
			}
		}
	}
	if len(s.queue) > mostStretch {
		return t
	}
	for _, n := range s.queue[:starts] {
		m := s.mark(n)
		if m.kept, m.met = true, true; m.before == 0 {
			t.nodes = append(t.nodes, n)
		}
	}
	t.clear = true
	for i := 0; i < len(t.nodes); i++ {
		n := t.nodes[i]
		next, kept := s.after(n), s.mark(n).kept
		decided := n != exit && kept && r.conditions[n] != nil && r.conditions[n].Place == place &&
			!r.probed[n].on && !r.probed[n].counted
		if decided {
			t.decided = append(t.decided, n)
		}
		t.clear = t.clear && (decided || s.apartFor(next)) && !(n != exit && r.unannounced(n))
		keeps := n != exit && kept && r.Keeps(n, place)
		for _, to := range next {
			m := s.mark(to)
			m.kept, m.met = keeps && (m.kept || !m.met), true
			if m.before--; m.before == 0 {
				t.nodes = append(t.nodes, to)
			}
		}
	}
	t.clear = t.clear && len(t.nodes) == len(s.queue) && len(t.decided) <= mostDecided
	return t
}

// apartFor reports whether what a probe-free route leads to behind each of some nodes is not behind
// another.
func (s *search) apartFor(nodes []int) bool {
	if len(nodes) < 2 {
		return true
	}
	queue := s.beyond[:0]
	defer func() {
		for _, n := range queue {
			s.mark(n).behind = 0
		}
		s.beyond = queue
	}()
	for i, n := range nodes {
		first := len(queue)
		queue = append(queue, n)
		for k := first; k < len(queue); k++ {
			m := s.mark(queue[k])
			if m.behind == 0 {
				m.behind = i + 1
				queue = append(queue, s.after(queue[k])...)
			} else if m.behind != i+1 {
				return false
			}
		}
	}
	return true
}

// captureValues takes probes off jumps that the value of a place decides, the dear ones first,
// where events of other jumps can capture it. Before, there was one probe-free route from each
// event to the next.
func captureValues(r *routine, must []bool) {
	jumps, prices := map[x86.Operand][]int{}, map[x86.Operand]float64{}
	var places []x86.Operand
	for b, c := range r.conditions {
		if c == nil || !r.probed[b].on || must[b] {
			continue
		}
		if jumps[c.Place] == nil {
			places = append(places, c.Place)
		}
		jumps[c.Place] = append(jumps[c.Place], b)
		prices[c.Place] += r.costs.price(b)
	}
	if len(places) == 0 {
		return
	}
	slices.SortStableFunc(places,
		func(a, b x86.Operand) int { return cmp.Compare(prices[b], prices[a]) })
	p := newPruner(newSearch(r))
	for _, place := range places {
		p.captureValue(place, jumps[place])
		p.tryCaptures(place, jumps[place])
	}
}

// mostCaptures is how many events are tried that would be there for a value alone.
const mostCaptures = 8

// captureDoubt is the part of what probes of jumps are expected to cost, where that is estimated,
// that an event more must save: what it costs is certain.
const captureDoubt = 0.5

// tryCaptures puts probes where their events may capture the value of a place, if that is cheaper.
// Where frequencies are estimated these are for jumps alone that not all events can decide
// without.
func (p *pruner) tryCaptures(place x86.Operand, jumps []int) {
	r := p.s.r
	left := slices.DeleteFunc(slices.Clone(jumps), func(j int) bool {
		return !r.probed[j].on || !r.costs.isMeasured() && p.isBehindCaptures(j, place)
	})
	most := r.costs.sum(left)
	if !r.costs.isMeasured() {
		most *= 1 - captureDoubt
	}
	for _, b := range p.blocksToCaptureIn(place, left, most) {
		p.was = append(p.was[:0], r.probed...)
		cost := r.cost()
		r.probe(b)
		carriers, some := p.takeOffDecided(place,
			slices.DeleteFunc(slices.Clone(left), func(j int) bool { return !r.probed[j].on }))
		if !some || r.cost() >= cost {
			copy(r.probed, p.was)
			continue
		}
		p.keepValuesInNeed(place, carriers)
	}
}

// blocksToCaptureIn lists blocks without a probe that are expected to cost less than most, the
// cheap ones first, whose events might decide some jumps by the value of a place.
func (p *pruner) blocksToCaptureIn(place x86.Operand, jumps []int, most float64) (list []int) {
	r, s := p.s.r, p.back
	s.reset()
	for _, j := range jumps {
		s.visit(j, origin)
	}
	for i := 0; i < len(s.queue); i++ {
		for _, before := range p.before.Of(p.index(s.queue[i])) {
			m := int(before)
			if m == exit || *s.at(m) != unseen || r.probed[m].on || slices.Contains(list, m) {
				continue
			}
			if p.couldCapture(m, place) && r.costs.price(m) < most {
				list = append(list, m)
			}
			if r.Keeps(m, place) {
				s.visit(m, s.queue[i])
			}
		}
	}
	slices.SortStableFunc(list,
		func(a, b int) int { return cmp.Compare(r.costs.price(a), r.costs.price(b)) })
	return list[:min(len(list), mostCaptures)]
}

// captureValue has all events carry the value that can, takes off what probes it may, and leaves
// the value with the events that are in need of it.
func (p *pruner) captureValue(place x86.Operand, jumps []int) {
	carriers, _ := p.takeOffDecided(place, jumps)
	p.keepValuesInNeed(place, carriers)
}

// takeOffDecided has all events carry the value that can, which it lists, and takes off what probes
// it may. It reports whether there were any.
func (p *pruner) takeOffDecided(place x86.Operand, jumps []int) (carriers []int, some bool) {
	r := p.s.r
	jumps = slices.DeleteFunc(slices.Clone(jumps),
		func(j int) bool { return !p.isBehindCaptures(j, place) })
	if len(jumps) == 0 {
		return nil, false
	}
	value := &plan.Capture{Kind: plan.JumpPlace, Table: none, Operand: place}
	for b := range r.probed {
		if p.mayCapture(b, place) {
			carriers = append(carriers, b)
			r.probed[b].capture = value
		}
	}
	return carriers, p.takeOff(jumps)
}

// keepValuesInNeed leaves the value with those of some events that are in need of it: without, the
// ways behind them would meet.
func (p *pruner) keepValuesInNeed(place x86.Operand, carriers []int) {
	if len(carriers) == 0 {
		return
	}
	r := p.s.r
	near := p.s.near(func(b int) bool {
		c := r.conditions[b]
		return c != nil && c.Place == place && !r.probed[b].on
	})
	for _, b := range carriers {
		value := r.probed[b].capture
		r.probed[b].capture = nil
		if r.probed[b].on && near.any(r.Blocks[b].After()) && p.meetsAfter(b) {
			r.probed[b].capture = value
		}
	}
}

// isBehindCaptures reports whether a probe-free route leads to the jump of block b from events
// alone that may carry the value of a place, and that is kept on the way.
func (p *pruner) isBehindCaptures(b int, place x86.Operand) bool {
	r, s := p.s.r, p.back
	s.reset()
	s.visit(b, origin)
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if slices.Contains(r.entries, n) {
			return false
		}
		for _, before := range p.before.Of(n) {
			m := int(before)
			switch {
			case *s.at(m) != unseen, p.mayCapture(m, place):
			case r.probed[m].on, !r.Keeps(m, place):
				return false
			default:
				s.visit(m, n)
			}
		}
	}
	return true
}

// mayCapture reports whether the event of block b may capture the value of a place, besides which
// way the jump goes that it sits on.
func (p *pruner) mayCapture(b int, place x86.Operand) bool {
	r := p.s.r
	captured := r.capturedPlace(b)
	return r.probed[b].on && (r.probed[b].capture == nil ||
		captured != nil && *captured == place) && p.couldCapture(b, place)
}

// couldCapture reports whether it might, had the block a probe that captures nothing else.
func (p *pruner) couldCapture(b int, place x86.Operand) bool {
	r := p.s.r
	at, ok := r.costs.point(b)
	return ok && at.edges && r.Blocks[b].End == cfg.Jcc && r.HasPlace(place,
		r.Blocks[b].Insns[at.insn].Addr)
}

// valueDecides reports whether the event of block b captures a value that decides what it leaves
// open. One that does not is dropped.
func (s *search) valueDecides(b int) bool {
	r := s.r
	place := r.capturedPlace(b)
	if place == nil {
		return false
	}
	if !s.stretch(b, *place).clear {
		r.probed[b].capture = nil
	}
	return r.probed[b].capture != nil
}

package planner

import (
	"math"
	"slices"

	"wpptrace/internal/grouped"
	"wpptrace/loader/plan"
)

// A search looks at what can run from one place on without an event.
type search struct {
	r      *routine
	parent []int32 // by node + 1; unseen, or origin, or the node before
	queue  []int   // the nodes that are not unseen, in the order in which they were come to
	marks  []mark  // by node + 1; nil: none has been set
	beyond []int   // apartFor's own queue
}

const (
	unseen = -3
	origin = -2
)

func newSearch(r *routine) *search {
	s := &search{r: r, parent: make([]int32, len(r.Blocks)+1)}
	for i := range s.parent {
		s.parent[i] = unseen
	}
	return s
}

func (s *search) at(node int) *int32 { return &s.parent[node-exit] }

func (s *search) reset() {
	for _, n := range s.queue {
		*s.at(n) = unseen
	}
	s.queue = s.queue[:0]
}

func (s *search) visit(node, from int) {
	*s.at(node) = int32(from)
	s.queue = append(s.queue, node)
}

// way lists the nodes from the search's origin to node.
func (s *search) way(node int) []int {
	length := 1
	for n := node; *s.at(n) != origin; n = int(*s.at(n)) {
		length++
	}
	nodes := make([]int, length)
	for i := range nodes {
		nodes[i] = node
		node = int(*s.at(node))
	}
	return nodes
}

// after are the nodes that may run after node without an event in between. An end of the activation
// goes on with the next one where nothing else would make an event in between.
func (s *search) after(node int) []int {
	r := s.r
	switch {
	case node == exit && r.standing.probeFree:
		return nil
	case node == exit:
		return r.entries
	case r.probed[node].on, r.switches.known(node):
		return nil
	case r.probed[node].counted:
		return r.loops.behind(node)
	}
	return r.onward[node]
}

// findOnward finds the nodes that may run after each block without an event of what it calls. When
// other routines are left out these change for blocks that lead to them alone.
func (r *routine) findOnward() {
	if r.onward == nil {
		r.onward = make([][]int, len(r.Blocks))
		for b := range r.onward {
			r.onward[b] = r.Blocks[b].After()
		}
	}
	for _, b := range r.calls.leads {
		next := r.Blocks[b].After()
		if landings := r.throws(b); len(landings) > 0 {
			next = slices.Concat(next, landings)
		}
		r.onward[b] = next
	}
}

// throws are the places in the routine that external code, which the call that ends
// block b enters, may come to without an event: the landing pads of the call, and what follows
// calls that may return again.
func (r *routine) throws(b int) []int {
	if kind, _ := r.calls.callee(b); (kind == plan.External || kind == plan.Unknown) &&
		r.calls.isCall(b) {
		return r.landings(b)
	}
	return nil
}

// landings are the places in the routine that the call which ends block b may come to otherwise
// than by its return.
func (r *routine) landings(b int) []int {
	if len(r.again) == 0 {
		return r.Blocks[b].Pads
	}
	own := r.continuation(b)
	return slices.Concat(r.Blocks[b].Pads,
		slices.DeleteFunc(slices.Clone(r.again), func(n int) bool { return n == own }))
}

// twoWays searches from any of some nodes. If a node is reached twice it returns the nodes of both
// ways to it.
func (s *search) twoWays(from []int) (a, b []int, found bool) {
	node, before, found := s.collide(from)
	switch {
	case !found:
		return nil, nil, false
	case before == origin:
		return []int{node}, []int{node}, true
	}
	return s.way(node), append([]int{node}, s.way(before)...), true
}

// collide searches from any of some nodes until it comes to one again, and returns that and the one
// before it, or origin.
func (s *search) collide(from []int) (node, before int, found bool) {
	s.reset()
	for _, n := range from {
		if *s.at(n) != unseen {
			return n, origin, true
		}
		s.visit(n, origin)
	}
	parent, queue := s.parent, s.queue // this loop takes much of the time of a plan
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		for _, next := range s.after(n) {
			if parent[next-exit] != unseen {
				s.queue = queue
				return next, n, true
			}
			parent[next-exit] = int32(n)
			queue = append(queue, next)
		}
	}
	s.queue = queue
	return 0, 0, false
}

// A blockSet is some blocks of a routine, by number.
type blockSet []bool

func (some blockSet) any(nodes []int) bool {
	return slices.ContainsFunc(nodes, func(n int) bool { return n != exit && some[n] })
}

// near finds the blocks for which is holds, and those from which a probe-free route leads to one in
// the same activation.
func (s *search) near(is func(b int) bool) blockSet {
	near := make(blockSet, len(s.r.Blocks))
	for b := range near {
		near[b] = is(b)
	}
	near.extend(s.after)
	return near
}

// extend adds the blocks from which those in the set are reached. next lists the nodes after a
// block. It takes linear time.
func (some blockSet) extend(next func(b int) []int) {
	var queue []int
	for b, in := range some {
		if in {
			queue = append(queue, b)
		}
	}
	if len(queue) == 0 {
		return
	}
	before := grouped.By(len(some), func(add func(node, before int32)) {
		for b := range some {
			for _, n := range next(b) {
				if n != exit {
					add(int32(n), int32(b))
				}
			}
		}
	})
	for ; len(queue) > 0; queue = queue[1:] {
		for _, b := range before.Of(queue[0]) {
			if !some[b] {
				some[b] = true
				queue = append(queue, int(b))
			}
		}
	}
}

// eachStart calls yield with the nodes that may come next after an event of block b, one set for
// each thing that the event may say.
func (r *routine) eachStart(b int, yield func(from []int)) {
	switch {
	case r.probed[b].edges, r.switches.known(b):
		next := r.Blocks[b].After()
		for i := range next {
			yield(next[i : i+1])
		}
	case r.probed[b].on:
		yield(r.onward[b])
	}
}

// separate adds probes until from each place there is only one probe-free route to each other
// place, and the rounds of all loops without a probe are known.
func (s *search) separate() {
	newParting(s).partAll()
	s.countRounds(false)
}

// countRounds adds probes until the rounds of all loops without one are known, in a routine in
// which from each place there is only one probe-free route to each other place, and keeps that so:
// where they are not known it adds probes around the loop, if add is set, or gives it its own.
func (s *search) countRounds(add bool) {
	r, rounds := s.r, &roundSearch{s.r, s}
	p := newParting(s)
	for r.traced() {
		_, w := rounds.find()
		if w == nil {
			return
		}
		if !add || !rounds.addCapture(w) {
			r.probe(w.loop)
		}
		p.partAll()
	}
}

// A parting adds probes to a routine, to which nothing else happens meanwhile but that probes are
// added. These take probe-free routes away, so that what is sure once stays so. One that parts a
// switch from the check which decided it opens ways behind the switch; but it is put only where the
// search has come from the check, and on from it, so that nothing that is sure leads there.
type parting struct {
	search *search
	sure   []bool // by node + 1: there is one probe-free route from it to each other place
}

func newParting(s *search) *parting { return &parting{s, make([]bool, len(s.parent))} }

// partAll sees to it that from each start there is only one probe-free route to each other place.
func (p *parting) partAll() {
	r := p.search.r
	for again := true; again && r.traced(); {
		again = false
		part := func(from []int) { again = p.part(from) || again }
		part(r.entries)
		for b := range r.Blocks {
			if !p.search.valueDecides(b) {
				r.eachStart(b, part)
			}
		}
	}
}

// part does so for one start. It reports whether it added any probe.
func (p *parting) part(from []int) (changed bool) {
	r := p.search.r
	if !r.traced() || len(from) == 1 && p.sure[from[0]-exit] {
		return false
	}
	changed = p.search.separateFrom(from)
	for _, n := range p.search.queue {
		p.sure[n-exit] = true
	}
	return changed
}

// separateFrom adds probes until from some nodes on there is only one probe-free route to each
// place. It reports whether it added any.
func (s *search) separateFrom(from []int) (changed bool) {
	r := s.r
	for r.traced() {
		a, b, found := s.twoWays(from)
		if !found {
			return changed
		}
		s.separateWays(a, b)
		changed = true
	}
	return true
}

// separateWays puts the cheapest probe on a block that is on one of the two ways only, or on a
// circle. Both ways begin with the node at which they meet.
func (s *search) separateWays(a, b []int) {
	r := s.r
	count := map[int]int{}
	for _, n := range a {
		count[n] |= 1
	}
	for _, n := range b[1:] {
		count[n] |= 2
	}
	circle := count[a[0]]&2 != 0
	best, price := exit, math.Inf(1)
	consider := func(n int) {
		if n != exit && !r.probed[n].on && r.costs.price(n) < price {
			best, price = n, r.costs.price(n)
		}
	}
	for i, n := range b {
		apart := count[n] == 2
		if circle && i > 0 { // the circle is b from its second node up to where a[0] comes again
			apart = true
		}
		if apart {
			consider(n)
		}
		if circle && i > 0 && n == a[0] {
			break
		}
	}
	for _, n := range a[1:] {
		if count[n] == 1 && !circle {
			consider(n)
		}
	}
	table, tablePrice := s.cheapestTable(a, b)
	switch {
	case tablePrice < price && r.switches.captureTarget(table):
	case best != exit:
		r.probe(best)
	default:
		r.leaveOut("two probe-free routes to the block at %x, and no place for a probe",
			r.address(a[0]))
	}
}

// cheapestTable finds a switch at which the two ways part.
func (s *search) cheapestTable(a, b []int) (table int, price float64) {
	r := s.r
	price = math.Inf(1)
	for _, way := range [][]int{a, b} {
		for _, n := range way {
			if n != exit && r.switches.is[n] && !r.switches.isKnown(n) &&
				r.costs.freq[n]*SteppedCost < price {
				table, price = n, r.costs.freq[n]*SteppedCost
			}
		}
	}
	return table, price
}

func (r *routine) address(node int) uint64 {
	if node == exit {
		return r.Addr
	}
	return r.Blocks[node].Lo
}

// markFirst finds the blocks that can be reached from the entry without an event.
func (r *routine) markFirst() {
	r.first = make([]bool, len(r.Blocks))
	queue := slices.Clone(r.entries)
	for _, b := range queue {
		r.first[b] = true
	}
	for len(queue) > 0 {
		b := queue[0]
		queue = queue[1:]
		if r.probed[b].on {
			continue
		}
		for _, n := range r.Blocks[b].After() {
			if n != exit && !r.first[n] {
				r.first[n] = true
				queue = append(queue, n)
			}
		}
	}
}

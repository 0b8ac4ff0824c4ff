package planner

import (
	"math"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// opens reports whether external code may have run when control comes back to the end
// of block b.
func (r *routine) opens(b int) bool {
	switch kind, t := r.calls.callee(b); {
	case kind == plan.External, kind == plan.Unknown, kind == plan.Known && t.standing.open:
		return r.calls.isCall(b)
	}
	return false
}

// unannounced reports whether block b may enter external code, and no event of the
// block says so.
func (r *routine) unannounced(b int) bool {
	if r.probed[b].on {
		return false
	}
	kind, _ := r.calls.callee(b)
	return kind == plan.Unknown
}

// markOpen finds the routines that MayLeaveCallOpen, and has the rules look again at those that
// call one which did not before.
func (p *planner) markOpen() {
	before := make([]bool, len(p.routines))
	for i, r := range p.routines {
		before[i], r.standing.open = r.standing.open, r.traced() && r.standing.ambiguous
	}
	leave := make([]bool, len(p.routines))
	p.each(func(r *routine) bool {
		leave[r.ID] = r.traced() && !r.standing.open && leavesOpen(r, nil)
		return false
	})
	var queue []*routine
	for i, r := range p.routines {
		if r.standing.open = r.standing.open || leave[i]; r.standing.open {
			queue = append(queue, r)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, r := range queue[0].calls.callers {
			if r.traced() && !r.standing.open && leavesOpen(r, queue[0]) {
				r.standing.open = true
				queue = append(queue, r)
			}
		}
	}
	for i, r := range p.routines {
		if r.standing.open && !before[i] {
			for _, caller := range r.calls.callers {
				caller.unsettled = caller.traced()
			}
		}
	}
}

// markRestarted finds the routines that may begin, without an event before, as external code
// enters them or those that call them or jump to them. It has the rules look again at those that
// were not taken for such, and reports whether there are any. It expects markFirst to have run.
func (p *planner) markRestarted() (some bool) {
	renewed := make([]bool, len(p.routines))
	var queue []*routine
	mark := func(r *routine) {
		if r != nil && r.traced() && !renewed[r.ID] {
			renewed[r.ID] = true
			queue = append(queue, r)
		}
	}
	for _, r := range p.routines {
		if r.standing.entered {
			mark(r)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, b := range queue[0].calls.leads {
			mark(calleeBeforeEvent(queue[0], b))
		}
	}
	for i, r := range p.routines {
		r.unsettled = renewed[i] && !r.standing.restarted
		r.standing.restarted = renewed[i]
		some = some || r.unsettled
	}
	return some
}

// leavesOpen reports whether the routine does so; if a callee is given, by its calls of that one.
func leavesOpen(r, callee *routine) bool {
	var s *search
	for _, b := range r.calls.leads {
		switch kind, t := r.calls.callee(b); {
		case kind == plan.Harmless, kind == plan.Known && !t.standing.open, callee != nil &&
			t != callee:
			continue
		case !r.calls.isCall(b):
			return true // whom it jumps to returns in its place
		case r.standing.entered:
			continue // it makes an event in between
		case s == nil:
			s = newSearch(r)
		}
		if s.reaches(r.continuation(b), exit) {
			return true
		}
	}
	return false
}

// continuation is where the call that ends block b returns to; exit if it does not.
func (r *routine) continuation(b int) int {
	if block := &r.Blocks[b]; block.CallReturns() {
		return block.Succ[0]
	}
	return unseen
}

// reaches reports whether there is a probe-free route, within one activation, from a node to
// another.
func (s *search) reaches(from, to int) bool {
	return s.explore(from, func(n int) bool { return n == to }) != unseen
}

// find searches within one activation for a node that can be reached without an event, and returns
// the way to it.
func (s *search) find(from int, is func(node int) bool) (way []int, ok bool) {
	node := s.explore(from, is)
	if node == unseen {
		return nil, false
	}
	return s.way(node), true
}

// explore returns the first such node that it comes to, or unseen.
func (s *search) explore(from int, is func(node int) bool) (node int) {
	if from == unseen {
		return unseen
	}
	s.reset()
	s.visit(from, origin)
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if is(n) {
			return n
		}
		if n == exit {
			continue
		}
		for _, next := range s.after(n) {
			if *s.at(next) == unseen {
				s.visit(next, n)
			}
		}
	}
	return unseen
}

// localRules are what the rules ask of one routine, now that it is known how others stand.
type localRules struct {
	r *routine
	s *search
	// a probe has been added, or it has become another thing whether the routine is ambiguous
	changed bool
}

// applyLocalRules adds what rules 2, 4 and 6 ask for, and what rule 5 asks of calls of traced
// routines. It reports whether anything changed.
func applyLocalRules(r *routine) (changed bool) {
	l := &localRules{r: r, s: newSearch(r)}
	unknown := slices.ContainsFunc(r.calls.leads,
		func(b int) bool { return r.calls.by[b].kind == plan.Unknown })
	if unknown { // whoever external code calls back must be able to say from where
		l.requireEvent(r.Entry, func(n int) bool { return n != exit && r.unannounced(n) })
	}
	if r.calls.dynamicFrame {
		l.requireKnownFrames()
	}
	l.requireEventsBehindCalls(unknown)
	if unknown {
		l.separateCallers()
	}
	if r.standing.restarted {
		l.requireEvent(r.Entry,
			func(n int) bool { return n != exit && !r.probed[n].on && l.opensCallee(n) })
		l.separateEntry()
	}
	return l.changed
}

// requireEvent adds probes until an event comes before any node that is looked for, on the ways
// from some node to it.
func (l *localRules) requireEvent(from int, is func(int) bool) {
	for l.r.traced() {
		way, found := l.s.find(from, is)
		if !found {
			return
		}
		l.changed = true
		l.r.probeOn(way)
	}
}

// requireKnownFrames sees to it that a chain of callers is followed through frames of known size.
// Whose call it ends at the last event says, be there other activations of the routine.
func (l *localRules) requireKnownFrames() {
	r := l.r
	unfollowable := func(n int) bool { return n != exit && l.unfollowable(n) }
	l.requireEvent(r.Entry, unfollowable)
	for _, b := range r.calls.leads {
		if l.leadsBack(b) {
			l.requireEvent(r.continuation(b), unfollowable)
		}
	}
}

// requireEventsBehindCalls sees to it that an event comes after each call in which external code
// may run, before the next such call that no event announces, if there are any, and before the end.
func (l *localRules) requireEventsBehindCalls(unknown bool) {
	r := l.r
	ends := func(n int) bool {
		if n == exit {
			return r.standing.entered
		}
		return r.unannounced(n)
	}
	for _, b := range r.calls.leads {
		if !r.opens(b) {
			continue
		}
		if unknown || r.standing.entered {
			l.requireEvent(r.continuation(b), ends)
		}
		l.separateThrown(b)
	}
}

// separateEntry sees to it that an activation that begins as external code enters the
// routine, or a caller of it that has made no event, where it has caught what was thrown or jumped
// out of another in the same place, is known from that one going on (rule 12: restarts).
func (l *localRules) separateEntry() {
	r, s := l.r, l.s
	comesBack := slices.ContainsFunc(r.Blocks,
		func(b cfg.Block) bool { return slices.Contains(b.Succ, r.Entry) })
	for r.traced() {
		first := s.all(r.entries)
		way := l.backTo(first)
		if way == nil {
			way = l.besideCall(first)
		}
		if way == nil {
			break
		}
		l.changed = true
		b, price := exit, math.Inf(1)
		if !r.probed[r.Entry].on && !comesBack {
			b, price = r.Entry, r.costs.price(r.Entry)
		}
		for _, n := range way {
			if n != exit && !first[n] && !r.probed[n].on && r.costs.price(n) < price {
				b, price = n, r.costs.price(n)
			}
		}
		if b == exit {
			r.leaveOut("no probe can distinguish its activations: see the block at %x",
				r.address(way[0]))
			break
		}
		r.probe(b)
	}
}

// opensCallee reports whether block b calls a traced routine that MayLeaveCallOpen.
func (l *localRules) opensCallee(b int) bool {
	r := l.r
	kind, _ := r.calls.callee(b)
	return kind == plan.Known && r.opens(b)
}

// backTo finds a probe-free route from where external code has been running to one of some
// blocks; nil, if there is none.
func (l *localRules) backTo(set blockSet) []int {
	r, s := l.r, l.s
	is := func(n int) bool { return n != exit && set[n] }
	for _, b := range r.calls.leads {
		if r.opens(b) {
			if way, found := s.find(r.continuation(b), is); found {
				return way
			}
		}
		if l.leadsOut(b) {
			for _, pad := range r.landings(b) {
				if way, found := s.find(pad, is); found {
					return way
				}
			}
		}
	}
	return nil
}

// besideCall finds a probe-free route to one of some blocks from where another leads to a call of
// external code; nil, if there is none.
func (l *localRules) besideCall(set blockSet) (way []int) {
	r, s := l.r, l.s
	calls := func(b int) bool { return r.unannounced(b) && r.calls.isCall(b) }
	if !slices.ContainsFunc(r.calls.leads, calls) {
		return nil
	}
	near := s.near(calls)
	for b := range r.Blocks {
		r.eachStart(b, func(from []int) {
			if !near.any(from) {
				return
			}
			for i := 0; way == nil && i < len(from); i++ {
				way, _ = s.find(from[i], func(n int) bool { return n != exit && set[n] })
			}
		})
		if way != nil {
			break
		}
	}
	return way
}

// leadsOut reports whether external code may run before the call that ends block b is
// over.
func (l *localRules) leadsOut(b int) bool {
	r := l.r
	switch kind, t := r.calls.callee(b); kind {
	case plan.External, plan.Unknown:
		return r.calls.isCall(b)
	case plan.Known:
		return r.calls.isCall(b) && t.calls.external
	}
	return false
}

// all marks the blocks that can be reached without an event from some, within one activation.
func (s *search) all(from []int) blockSet {
	marked := make(blockSet, len(s.r.Blocks))
	for _, b := range from {
		s.explore(b, func(n int) bool {
			if n != exit {
				marked[n] = true
			}
			return false
		})
	}
	return marked
}

// separateThrown sees to it that a place which the call that ends block b may come to otherwise
// than by its return, after the last event of a traced routine that it called, is not come to by
// ordinary flow as well.
func (l *localRules) separateThrown(b int) {
	r := l.r
	if kind, _ := r.calls.callee(b); kind != plan.Known || len(r.landings(b)) == 0 || !r.traced() {
		return
	}
	l.changed = l.s.separateFrom(slices.Concat(r.Blocks[b].After(), r.landings(b))) || l.changed
}

// separateCallers sees to it that what is called back after an event can come from one call alone,
// and finds out whether the routine is ambiguous.
func (l *localRules) separateCallers() {
	r, s := l.r, l.s
	ambiguous := false
	// a probe may open ways behind a switch: then all rules are gone through again
	near := s.near(r.unannounced)
	separate := func(from []int) {
		for r.traced() && near.any(from) {
			origins := s.origins(from)
			if len(origins) < 2 {
				return
			}
			if !r.standing.entered && len(origins) == 2 && origins[1] == exit {
				ambiguous = true
				return
			}
			l.changed = true
			r.probeOn(s.apart(origins))
		}
	}
	separate(r.entries)
	for b := range r.Blocks {
		r.eachStart(b, separate)
	}
	l.changed = l.changed || r.standing.ambiguous != ambiguous
	r.standing.ambiguous = ambiguous
}

// origins lists where code may be called back from that a probe-free route leads to, within one
// activation: the blocks that enter it unannounced, and last exit, for the caller, if the
// activation can end without having entered it.
func (s *search) origins(from []int) (list []int) {
	s.reset()
	for _, n := range from {
		if *s.at(n) == unseen {
			s.visit(n, origin)
		}
	}
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if n == exit {
			continue
		}
		if s.r.unannounced(n) {
			list = append(list, n)
		}
		for _, next := range s.after(n) {
			if *s.at(next) == unseen {
				s.visit(next, n)
			}
		}
	}
	if *s.at(exit) != unseen && !slices.ContainsFunc(s.way(exit),
		func(n int) bool { return n != exit && s.r.unannounced(n) }) {
		list = append(list, exit)
	}
	return list
}

// apart lists the blocks that are on the way to some of the nodes found, and not on those to all.
func (s *search) apart(nodes []int) (blocks []int) {
	count := map[int]int{}
	for _, n := range nodes {
		for _, b := range s.way(n) {
			count[b]++
		}
	}
	for b, n := range count {
		if b != exit && n < len(nodes) {
			blocks = append(blocks, b)
		}
	}
	slices.Sort(blocks)
	return blocks
}

// unfollowable reports whether a chain of callers ends at the call that ends block b, as the size
// of the frame is not known there, and no event comes with it.
func (l *localRules) unfollowable(b int) bool {
	r := l.r
	if r.probed[b].on || !r.calls.isCall(b) || r.Blocks[b].Depth >= 0 {
		return false
	}
	kind, _ := r.calls.callee(b)
	return kind == plan.Known
}

// leadsBack reports whether the routine may be entered again out of the call that ends block b.
func (l *localRules) leadsBack(b int) bool {
	r := l.r
	if !r.calls.isCall(b) {
		return false
	}
	switch kind, t := r.calls.callee(b); kind {
	case plan.External, plan.Unknown:
		return true
	case plan.Known:
		return t.calls.external || r.calls.circle != 0 && t.calls.circle == r.calls.circle
	}
	return false
}

// probeOn puts the cheapest probe on a way.
func (r *routine) probeOn(way []int) {
	best, price := exit, math.Inf(1)
	for _, n := range way {
		if n != exit && !r.probed[n].on && r.costs.price(n) < price {
			best, price = n, r.costs.price(n)
		}
	}
	if best == exit {
		r.leaveOut("no place for a probe on the way to the block at %x", r.address(way[0]))
		return
	}
	r.probe(best)
}

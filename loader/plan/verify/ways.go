package verify

import (
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// A start is what may run next after an event, or in a new activation: any of its nodes.
type start struct {
	event  int // the block whose event it was; none: an activation begins
	nodes  []int
	table  int           // the switch that the event decides
	target int           // where that goes
	values *plan.Capture // a captured value, which decides some jumps
}

// none is no node.
const none = -1

// A step of a walk is a node that a probe-free route may come to.
type step struct {
	node   int
	parent int  // its index in the walk's steps, or none
	ahead  bool // the switch that the event decides has not come yet
	opened bool // a call of external code lies behind it, or a jump there
	later  bool // it belongs to the next activation
}

// eachStart calls yield with the starts after each outcome of each event of the routine, and
// with the one that its entry makes.
func (r *routine) eachStart(yield func(s start)) {
	yield(start{event: none, nodes: r.entries, table: none})
	for b, s := range r.sites {
		if s != nil {
			r.startsAfter(b, s, yield)
		}
	}
}

func (r *routine) startsAfter(b int, s *plan.Site, yield func(s start)) {
	block, c := &r.Blocks[b], s.Capture
	switch {
	case c != nil && c.Kind == plan.JumpPlace:
		yield(start{event: b, nodes: r.Blocks[b].After(), table: none, values: c})
	case c != nil && c.Kind == plan.SwitchTarget:
		for _, to := range r.Blocks[b].After() {
			yield(start{event: b, nodes: []int{to}, table: none})
		}
	case s.Condition < plan.NoCondition && block.End == cfg.Jcc:
		for i := range block.Succ {
			next := block.Succ[i : i+1]
			if c == nil || c.Kind != plan.SwitchIndex || c.Taken != (i == 0) || c.Table < 0 ||
				c.Table >= len(r.Blocks) || r.Blocks[c.Table].Table == nil {
				yield(start{event: b, nodes: next, table: none})
				continue
			}
			targets := slices.Sorted(slices.Values(r.Blocks[c.Table].Table.Targets))
			for _, to := range slices.Compact(targets) {
				yield(start{event: b, nodes: next, table: c.Table, target: to})
			}
		}
	default:
		yield(start{event: b, nodes: r.onwards(b), table: none})
	}
}

// outcomes are the start's nodes, by the outcomes of its event.
func (s start) outcomes(r *routine) (list [][]int) {
	if s.values == nil || len(s.nodes) != len(r.Blocks[s.event].Succ) {
		return [][]int{s.nodes}
	}
	for _, n := range s.nodes {
		list = append(list, []int{n})
	}
	return list
}

// onwards are the nodes that may run after a block without an event of what it enters.
func (r *routine) onwards(b int) []int {
	next := r.Blocks[b].After()
	if landings := r.throws(b); len(landings) > 0 {
		return slices.Concat(next, landings)
	}
	return next
}

// throws are the places in the routine that external code, which block b enters, may come to by an
// exception or by returning once more from an earlier call.
func (r *routine) throws(b int) []int {
	if r.enters(b) && r.Blocks[b].IsCall() {
		return r.landings(b)
	}
	return nil
}

// landings are the places that control may come to out of the call that ends block b, otherwise
// than by its return.
func (r *routine) landings(b int) []int {
	list := slices.Clone(r.Blocks[b].Pads)
	for _, n := range r.again {
		if !slices.Contains(r.Blocks[b].Succ, n) {
			list = append(list, n)
		}
	}
	return list
}

// checkWays: after each outcome of an event there is one probe-free route to each place at
// most, be it within one activation or with its end and the beginning of the next; and what is
// called back by external code on that way can come from one place alone.
func (v *verifier) checkWays(r *routine) {
	var twice, circle, sources bool
	r.eachStart(func(s start) {
		if s.values != nil {
			valueCheck{r, s}.check()
			return
		}
		f := r.walker.walk(s)
		switch {
		case f == nil:
		case f.circle && !circle:
			circle = true
			r.fault("a circle without an event", f.ways...)
		case !f.circle && !twice:
			twice = true
			r.fault(fmt.Sprintf("two probe-free routes to the same place%s", s.since(r)), f.ways...)
		}
		if from := r.walker.sources(); len(from) > 1 && !sources {
			sources = true
			r.fault(fmt.Sprintf("what is called back%s may come from two calls", s.since(r)),
				r.walker.wayTo(s, from[0]), r.walker.wayTo(s, from[1]))
		} else if len(from) == 1 && r.walker.endsUnopened() != none {
			r.ambiguousAt(s, from[0])
		}
	})
}

// since says after what a start comes.
func (s start) since(r *routine) string {
	if s.event == none {
		return " from its entry on"
	}
	return fmt.Sprintf(" after the event of the block at %x", r.Blocks[s.event].Lo)
}

// A meeting is two ways to one node, or a circle.
type meeting struct {
	circle bool
	ways   []Way
}

// A walker visits what can run in a routine without an event, from one place on.
type walker struct {
	r     *routine
	seen  byNode[int] // the walk that last came to it
	steps []step      // of the last walk
	walks int
}

// walk visits what a probe-free route can come to from a start, and leaves the steps in r.steps. It
// stops at the first node that it comes to a second time.
func (w *walker) walk(s start) *meeting {
	r := w.r
	w.walks++
	w.steps = w.steps[:0]
	for _, n := range s.nodes {
		if m := w.come(s, step{node: n, parent: none, ahead: s.table != none}); m != nil {
			return m
		}
	}
	for i := 0; i < len(w.steps); i++ {
		at := w.steps[i]
		next := step{parent: i, ahead: at.ahead, opened: at.opened, later: at.later}
		list := []int{}
		switch n := at.node; {
		case n == cfg.Exit && r.probeFree:
		case n == cfg.Exit:
			next.later = true
			list = r.entries
		case r.sites[n] != nil:
		case n == s.table && at.ahead:
			list, next.ahead = []int{s.target}, false
		default:
			next.opened = at.opened || r.enters(n)
			list = r.loopsOnce(n)
		}
		for _, n := range list {
			next.node = n
			if m := w.come(s, next); m != nil {
				return m
			}
		}
	}
	return nil
}

// come adds a step, unless its node has been come to.
func (w *walker) come(s start, next step) *meeting {
	r := w.r
	n := next.node
	if seen := w.seen.at(n); *seen != w.walks {
		*seen = w.walks
		w.steps = append(w.steps, next)
		return nil
	}
	before := slices.IndexFunc(w.steps, func(a step) bool { return a.node == n })
	for i := next.parent; i != none; i = w.steps[i].parent {
		if i == before {
			return &meeting{circle: true,
				ways: []Way{w.stepsTo(s, before),
					append(w.between(before, next.parent), r.way(n)...)}}
		}
	}
	second := append(w.stepsTo(s, next.parent), r.way(n)...)
	return &meeting{ways: []Way{w.stepsTo(s, before), second}}
}

// stepsTo is the way of a walk to step i, from the event on.
func (w *walker) stepsTo(s start, i int) Way {
	r := w.r
	way := w.between(none, i)
	if s.event != none {
		way = append(r.way(s.event), way...)
	}
	return way
}

// between is the way from one step to a later one; from the beginning, if the first is none.
func (w *walker) between(from, to int) Way {
	r := w.r
	var nodes []int
	for i := to; i != none; i = w.steps[i].parent {
		nodes = append(nodes, w.steps[i].node)
		if i == from {
			break
		}
	}
	slices.Reverse(nodes)
	return r.way(nodes...)
}

// wayTo is the way of the last walk to a node.
func (w *walker) wayTo(s start, node int) Way {
	return w.stepsTo(s, slices.IndexFunc(w.steps, func(a step) bool { return a.node == node }))
}

// sources are the blocks of the last walk that may have code call back and have no event that they
// enter it.
func (w *walker) sources() (blocks []int) {
	r := w.r
	for _, a := range w.steps {
		if !a.later && a.node != cfg.Exit && r.kinds[a.node] == plan.Unknown &&
			r.sites[a.node] == nil {
			blocks = append(blocks, a.node)
		}
	}
	return blocks
}

// endsUnopened is the step of the last walk with which the activation ends, if nothing has been
// entered on the way that may call back.
func (w *walker) endsUnopened() int {
	return slices.IndexFunc(w.steps,
		func(a step) bool { return a.node == cfg.Exit && !a.later && !a.opened })
}

// ambiguousAt takes it that code may be called back from a block, or once the routine has ended,
// and nothing decides between them.
func (r *routine) ambiguousAt(s start, source int) {
	if r.returnsOut && !r.ambiguous {
		r.fault(fmt.Sprintf("what is called back%s may come from a call, or from the caller "+
			"after its end", s.since(r)),
			r.walker.wayTo(s, source), r.walker.wayTo(s, cfg.Exit))
	}
	r.ambiguous = true
}

// probeFreeRoute is a probe-free route within one activation to a node that is looked for, nil if
// there is none.
func (w *walker) probeFreeRoute(from []int, is func(n int) bool) Way {
	r := w.r
	w.walks++
	w.steps = w.steps[:0]
	add := func(n, parent int) {
		if seen := w.seen.at(n); *seen != w.walks {
			*seen = w.walks
			w.steps = append(w.steps, step{node: n, parent: parent})
		}
	}
	for _, n := range from {
		add(n, none)
	}
	for i := 0; i < len(w.steps); i++ {
		n := w.steps[i].node
		if is(n) {
			return w.between(none, i)
		}
		if n == cfg.Exit || r.sites[n] != nil {
			continue
		}
		for _, next := range r.Blocks[n].After() {
			add(next, i)
		}
	}
	return nil
}

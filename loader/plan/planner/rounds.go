package planner

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

// loops are those of a routine of one block each that count their rounds.
type loops struct {
	r        *cfg.Routine
	counters map[int][]absint.Counter // by block: what may decide its rounds
	// by block, of those that were followed while probes are chosen
	effects [][]absint.Effect
}

// effectsOf are what the instructions of block n do to registers.
func (l *loops) effectsOf(n int) []absint.Effect {
	if l.effects == nil {
		l.effects = make([][]absint.Effect, len(l.r.Blocks))
	}
	if l.effects[n] == nil {
		l.effects[n] = l.r.Effects(n, 0, len(l.r.Blocks[n].Insns))
	}
	return l.effects[n]
}

// behind is the node that a loop of one block goes on to.
func (l *loops) behind(loop int) []int {
	succ := l.r.Blocks[loop].Succ
	if succ[0] == loop {
		return succ[1:]
	}
	return succ[:1]
}

// findCounters finds the loops of one block that count.
func (l *loops) findCounters() {
	l.counters = map[int][]absint.Counter{}
	for b := range l.r.Blocks {
		if list := l.r.Counters(b); len(list) > 0 && l.behind(b)[0] >= 0 {
			l.counters[b] = list
		}
	}
}

// A role is what an event, or the routine's entry, has to capture for the rounds of a loop to be
// known.
type role struct {
	block int // whose event it is; none: the entry
	// by counter: registers of which the event captures one, if the counter is chosen
	choices [][]plan.Registers
	known   []bool // by counter: it is known, and nothing has to be captured
	gap     []int  // the way between the event and the loop
}

// serves reports whether the event may capture something for some counter.
func (r *role) serves() bool {
	return slices.ContainsFunc(r.choices,
		func(list []plan.Registers) bool { return len(list) > 0 })
}

func newRole(l *counting, block int, way []int) role {
	return role{block, make([][]plan.Registers, len(l.counters)), make([]bool, len(l.counters)),
		way}
}

// A rounds is how the rounds of the loops are known that have no probe.
type rounds struct {
	// by block with a probe: of which its events capture the first
	captures map[int][]plan.Registers
	by       map[int]*absint.Counter // by block: what decides them
}

// A counting is what is known of one loop.
type counting struct {
	block          int
	counters       []absint.Counter
	before, behind []role
	unfollowed     []int // a way behind it on which no event decides anything, if there is one
}

// A want is probe-free routes near a loop on each of which an event should decide something.
type want struct {
	loop     int
	counters []absint.Counter // of the loop: one of them is to be decided
	before   bool
	ways     [][]int
	instead  *want // where no event can; nil: there is nothing else
}

// A roundSearch looks for what decides the rounds of the loops of a routine that have no probe.
type roundSearch struct {
	r *routine
	s *search
}

// find finds what events have to capture so that the rounds of all loops are known that have no
// probe. If that cannot be it returns what is wanted for the first of them.
func (x *roundSearch) find() (t *rounds, w *want) {
	r, s := x.r, x.s
	if len(r.loops.counters) == 0 {
		return &rounds{}, nil
	}
	t = &rounds{captures: map[int][]plan.Registers{}, by: map[int]*absint.Counter{}}
	var loops []*counting
	byBlock := map[int]*counting{}
	for b := range r.probed {
		if r.probed[b].counted {
			l := &counting{block: b, counters: r.loops.counters[b]}
			x.rolesBehind(l)
			loops = append(loops, l)
			byBlock[b] = l
		}
	}
	if len(loops) == 0 {
		return t, nil
	}
	near := s.near(func(b int) bool { return r.probed[b].counted })
	x.rolesBefore(none, r.entries, byBlock)
	for b := range r.Blocks {
		r.eachStart(b, func(from []int) {
			if near.any(from) {
				x.rolesBefore(b, from, byBlock)
			}
		})
	}
	for _, l := range loops {
		if !t.settle(l) {
			return t, l.want()
		}
	}
	return t, nil
}

// settle chooses the counter that decides a loop's rounds.
func (t *rounds) settle(l *counting) bool {
	for i, counter := range l.counters {
		roles := l.before
		if !counter.Exact {
			if l.unfollowed != nil {
				continue
			}
			roles = slices.Concat(l.before, l.behind)
		}
		if captures, ok := t.assign(i, roles); ok {
			t.captures = captures
			t.by[l.block] = &l.counters[i]
			return true
		}
	}
	return false
}

// assign finds registers for the events that serve what they have to decide already and some roles.
func (t *rounds) assign(counter int, roles []role) (captures map[int][]plan.Registers, ok bool) {
	captures = maps.Clone(t.captures)
	for _, role := range roles {
		if role.known[counter] {
			continue
		}
		list := role.choices[counter]
		if shared, ok := captures[role.block]; ok {
			list = slices.DeleteFunc(slices.Clone(shared),
				func(x plan.Registers) bool { return !slices.Contains(list, x) })
		}
		if len(list) == 0 {
			return nil, false
		}
		captures[role.block] = list
	}
	return captures, true
}

// want is where events could decide more of a loop: the ways on which none does for any counter.
func (l *counting) want() *want {
	w := l.wantBefore(func(absint.Counter) bool { return true })
	if len(w.ways) > 0 {
		return w
	}
	// what is known before the loop may be of a counter that nothing decides behind it
	exact := l.wantBefore(func(c absint.Counter) bool { return c.Exact })
	w = &want{loop: l.block, counters: l.counters, instead: exact}
	if l.unfollowed != nil {
		w.ways = [][]int{l.unfollowed}
		return w
	}
	for _, role := range l.behind {
		if !role.serves() {
			w.ways = append(w.ways, role.gap)
		}
	}
	return w
}

// wantBefore is where events before a loop could decide one of some counters.
func (l *counting) wantBefore(is func(absint.Counter) bool) *want {
	w := &want{loop: l.block, before: true}
	for _, c := range l.counters {
		if is(c) {
			w.counters = append(w.counters, c)
		}
	}
	for _, role := range l.before {
		decided := false
		for i, c := range l.counters {
			decided = decided || is(c) && (role.known[i] || len(role.choices[i]) > 0)
		}
		if !decided {
			w.ways = append(w.ways, role.gap)
		}
	}
	return w
}

// rolesBehind finds what the events behind a loop may capture: on all ways out of it, before
// anything is called and before the activation ends.
func (x *roundSearch) rolesBehind(l *counting) {
	r, s := x.r, x.s
	s.reset()
	s.visit(r.loops.behind(l.block)[0], origin)
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if n == exit || !r.probed[n].on && !x.passes(n) {
			l.unfollowed = s.forward(n)
			return
		}
		if r.probed[n].on {
			way := s.forward(n)
			l.behind = append(l.behind, x.roleBehind(l, n, way))
			continue
		}
		for _, next := range s.after(n) {
			if *s.at(next) != unseen { // ways meet that a value distinguishes
				l.unfollowed = s.forward(next)
				return
			}
			s.visit(next, n)
		}
	}
}

// passes reports whether control may run through block n, which has no probe, between a loop and
// the event behind it that decides its rounds.
func (x *roundSearch) passes(n int) bool {
	r := x.r
	switch r.Blocks[n].End {
	case cfg.Fall, cfg.Jmp, cfg.Jcc, cfg.Table:
		return !r.probed[n].counted
	}
	return false
}

// mayCaptureRegisters reports whether the event of block n may capture registers: it captures
// nothing else.
func (x *roundSearch) mayCaptureRegisters(n int) bool {
	r := x.r
	p := &r.probed[n]
	return p.on && !p.stepped && p.capture == nil
}

// roleBehind finds which registers decide, where the probe of the last block of a way out of a loop
// sits, what the loop left in those that count.
func (x *roundSearch) roleBehind(l *counting, block int, way []int) role {
	r := x.r
	regs := absint.Unchanged()
	x.followWay(&regs, way[:len(way)-1])
	regs.Apply(r.loops.effectsOf(block)[:x.seatOf(block)])
	role := newRole(l, block, way)
	if !x.mayCaptureRegisters(block) {
		return role
	}
	left := absint.Unchanged()
	for i, c := range l.counters {
		for reg := range int8(16) {
			if d, ok := absint.Distance(regs.At(reg), left.At(c.Reg), c.Width); ok &&
				d.IsConstant() && !c.Exact && reg != int8(arch.Native.StackPointer()) {
				role.choices[i] = append(role.choices[i],
					plan.Registers{Reg: reg, Minus: plan.NoRegister, Part: absint.Whole})
			}
		}
	}
	return role
}

// followWay runs the blocks of a probe-free route.
func (x *roundSearch) followWay(regs *absint.Registers, way []int) {
	r := x.r
	for _, n := range way {
		if r.probed[n].counted {
			regs.ApplyRounds(r.loops.effectsOf(n))
		} else {
			regs.Apply(r.loops.effectsOf(n))
		}
	}
}

// seatOf is the instruction in block n that its probe sits on, or would.
func (x *roundSearch) seatOf(n int) int {
	r := x.r
	if r.probed[n].on {
		return int(r.probed[n].insn)
	}
	p, _ := r.costs.point(n)
	return int(p.insn)
}

// rolesBefore finds what an event, or the entry, may capture for the loops that a probe-free route
// leads to from it: nothing, if it does in more than one way.
func (x *roundSearch) rolesBefore(block int, from []int, loops map[int]*counting) {
	r, s := x.r, x.s
	several := func(n int) bool { return false }
	if met := s.flood(from); len(met) > 0 {
		behind := newSearch(r)
		behind.flood(met)
		several = func(n int) bool { return *behind.at(n) != unseen }
	}
	for _, n := range s.queue {
		l := loops[n]
		if l == nil {
			continue
		}
		if way := s.forward(n); several(n) {
			l.before = append(l.before, newRole(l, block, way))
		} else {
			l.before = append(l.before, x.roleBefore(l, block, way[:len(way)-1]))
		}
	}
}

// flood visits what a probe-free route leads to from some nodes in the same activation, and reports
// the nodes that it came to again.
func (s *search) flood(from []int) (met []int) {
	s.reset()
	for _, n := range from {
		if *s.at(n) == unseen {
			s.visit(n, origin)
		}
	}
	for i := 0; i < len(s.queue); i++ {
		n := s.queue[i]
		if n == exit {
			continue // the next activation has its own start
		}
		for _, next := range s.after(n) {
			if *s.at(next) == unseen {
				s.visit(next, n)
			} else {
				met = append(met, next)
			}
		}
	}
	return met
}

// roleBefore finds which registers decide, where an event's probe sits, what there is at the end of
// a way, before the loop.
func (x *roundSearch) roleBefore(l *counting, block int, way []int) role {
	r := x.r
	regs := absint.Unchanged()
	if block != none {
		regs.Apply(r.loops.effectsOf(block)[x.seatOf(block):])
	}
	x.followWay(&regs, way)
	role := newRole(l, block, way)
	for i, c := range l.counters {
		v, ok := c.Beginning(&regs)
		if role.known[i] = ok && v.IsConstant(); !ok || v.IsConstant() || block == none ||
			!x.mayCaptureRegisters(block) {
			continue
		}
		if x, ok := plan.RegistersOf(v); ok {
			role.choices[i] = []plan.Registers{x}
		}
	}
	return role
}

// forward lists the nodes from the search's origin to node.
func (s *search) forward(node int) []int {
	way := s.way(node)
	slices.Reverse(way)
	return way
}

// mostCounted is how many loops of a routine may run uncounted: each costs a search of what leads
// to it.
const mostCounted = 1000

// countable lists the loops of one block whose rounds other events than theirs may decide, the
// dearest first.
func countable(r *routine, must []bool) (loops []int) {
	for b := range r.loops.counters {
		if _, ok := r.costs.point(b); ok && !must[b] {
			loops = append(loops, b)
		}
	}
	slices.SortFunc(loops, func(a,
		b int) int {
		return cmp.Or(cmp.Compare(r.costs.price(b), r.costs.price(a)), a-b)
	})
	return loops[:min(len(loops), mostCounted)]
}

// addCapture puts a probe on a way near a loop where it can capture what decides the loop's rounds.
func (x *roundSearch) addCapture(w *want) bool {
	r := x.r
	l := &counting{block: w.loop, counters: w.counters}
	for _, way := range w.ways {
		best, price := none, math.Inf(1)
		for i, n := range way {
			if n == exit || r.probed[n].on || r.costs.price(n) >= price {
				continue
			}
			was := r.probed[n]
			p, ok := r.costs.point(n)
			if !ok || p.stepped {
				continue
			}
			r.probed[n] = p
			var role role
			if w.before {
				role = x.roleBefore(l, n, way[i+1:])
			} else {
				role = x.roleBehind(l, n, way[:i+1])
			}
			r.probed[n] = was
			if role.serves() || slices.Contains(role.known, true) {
				best, price = n, r.costs.price(n)
			}
		}
		if best != none {
			return r.probe(best)
		}
	}
	return w.instead != nil && x.addCapture(w.instead)
}

// cost is what all probes are expected to cost for one activation.
func (r *routine) cost() (sum float64) {
	for b := range r.probed {
		if r.probed[b].on {
			sum += r.costs.price(b)
		}
	}
	return sum
}

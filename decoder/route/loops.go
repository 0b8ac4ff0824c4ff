package route

import (
	"wpptrace/bpf/wire"
	"wpptrace/loader/arch"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

// RegistersOf is what Register events say, the low wire.ValueBits of each register; nil, if they
// are not all there.
func RegistersOf(values []uint64) *arch.Registers {
	if len(values) != len(wire.Registers) {
		return nil
	}
	regs := &arch.Registers{}
	for i, number := range wire.Registers {
		regs[number] = values[i]
	}
	return regs
}

// A RegisterState is what is known of registers at some point: all, or what an event has captured.
type RegisterState struct {
	All      *arch.Registers
	Captured *plan.Registers // which of them Value is; nil: nothing was captured
	Value    uint64
}

// value is a function of the registers there; ok is false if it is not known.
func (h *RegisterState) value(l absint.Linear) (v uint64, ok bool) {
	v = uint64(l.Add)
	if h.Captured != nil && !l.IsConstant() {
		x, ok := plan.RegistersOf(l)
		return v + uint64(l.Terms[0].Times)*h.Captured.Value(h.Value), ok && x == *h.Captured
	}
	for _, t := range l.Terms[:l.N] {
		reg, part, ok := t.Symbol.Register()
		if !ok || h.All == nil {
			return 0, false
		}
		v += uint64(t.Times) * part.Of(h.All[reg])
	}
	return v, true
}

// A countedLoop is a loop of one block on a probe-free route: how many rounds it runs is known by
// what events have captured (rule 13).
type countedLoop struct {
	counter *absint.Counter
	// What the counter begins with, or its distance to the limit if it is Exact, by the registers
	// where the route begins, if that is known (begun).
	begins absint.Linear
	begun  bool
	// What the counter comes to, or that distance, by the registers where the route ends: if the
	// route ends in the loop, or the counter is not Exact.
	ends   absint.Linear
	within bool // the route ends in the loop
}

// A countedRoute is a probe-free route with such loops. The operations depend on which of them run
// more than once.
type countedRoute struct {
	from        *Position
	blocks      []int
	insn        int // where it ends in its last block; atProbe: at its probe, or out of the routine
	called      bool
	leaves      bool
	known       bool // the rounds of all loops can be known
	loops       []countedLoop
	transitions map[string]*Transition // by loop, a byte: 1 if it runs more than once
}

const atProbe = -1

// walk returns the transition along a route to a block, or, if it leaves, out of the routine. It is
// nil if nothing can say how often the loops on it run.
func (p *Position) walk(blocks []int, called, leaves bool) *Transition {
	w := &countedRoute{from: p, blocks: blocks, insn: atProbe, called: called, leaves: leaves}
	if w.find(); !w.known {
		return nil
	}
	return w.transition(nil)
}

// ToInsn returns the transition to instruction k of block b, before which the activation is
// interrupted. A probe-free route must lead to the block.
func (p *Position) ToInsn(b, k int, called bool) *Transition {
	i, _ := p.Free().find(b)
	return p.routeTo(i, k, called).transition(nil)
}

// CanCount reports whether it is known how often the loops run on the route to instruction k of
// block b, from the registers where it begins and where it ends, and how often those ahead of it
// will, from the latter. A probe-free route must lead to the block.
func (p *Position) CanCount(
	b, k int, called bool, begin RegisterState, there *arch.Registers,
) bool {
	if !p.Routine.counts {
		return true
	}
	i, _ := p.Free().find(b)
	w := p.routeTo(i, k, called)
	end := RegisterState{All: there}
	_, ok := w.rounds(nil, begin, end)
	return ok && p.Before(b, k).canCountAhead(end)
}

// routeTo is the route to instruction k of the block of node i.
func (p *Position) routeTo(i, k int, called bool) *countedRoute {
	w := &countedRoute{from: p, blocks: p.Free().route(i), insn: k, called: called}
	w.find()
	return w
}

// transition is the transition by which the loops run so many rounds; nil stands for once each.
func (w *countedRoute) transition(rounds []uint64) *Transition {
	key := make([]byte, 0, 32)
	for _, n := range rounds {
		key = append(key, byte(min(n, 2)-1))
	}
	if m := w.transitions[string(key)]; m != nil {
		return m
	}
	m := newBuilder(w.from)
	loop := 0
	for i, b := range w.blocks {
		m.step(b, w.called && i == 0)
		if w.from.Routine.Plan.Counts(b) != nil {
			if rounds != nil && rounds[loop] > 1 {
				m.again(b, loop)
			}
			loop++
		}
	}
	if w.leaves {
		m.leave()
	}
	if len(w.loops) > 0 {
		if w.transitions == nil {
			w.transitions = map[string]*Transition{}
		}
		m.counted = w
		w.transitions[string(key)] = &m.Transition
	}
	return &m.Transition
}

// again runs the loop that block b is, where the builder stands, more than once.
func (m *builder) again(b, loop int) {
	m.step(b, false)
	inc, _, _, _ := m.r.Numbers.Step(b, b)
	rounds := Emission{Kind: EmitRounds, Routine: m.r, Number: m.Add + inc, Loop: loop}
	m.Emissions = append(m.Emissions, rounds)
}

// find finds what decides the rounds of the loops on the route.
func (w *countedRoute) find() {
	r := w.from.Routine
	w.known = true
	if !r.counts {
		return
	}
	regs := w.from.registers()
	for i, b := range w.blocks {
		c, from := r.Plan.Counts(b), 0
		switch interrupted := i == 0 && w.from.Resumed; {
		case interrupted && c != nil:
			regs = r.Plan.Before(b, w.from.insn)
		case interrupted:
			from = w.from.insn
		}
		if c != nil {
			l := countedLoop{counter: c, within: i == len(w.blocks)-1 && !w.leaves}
			l.begins, l.begun = c.Beginning(&regs)
			w.known = w.known && l.begun && w.ends(&l, i)
			w.loops = append(w.loops, l)
		}
		r.pass(&regs, b, from, len(r.Blocks[b].Insns))
	}
}

// pass runs instructions of block b or, if it is a counted loop, all its rounds.
func (r *Routine) pass(regs *absint.Registers, b, from, to int) {
	if r.Plan.Counts(b) != nil {
		r.Plan.FollowRounds(regs, b)
	} else {
		r.Plan.Follow(regs, b, from, to)
	}
}

// registers are what they hold where the position's routes begin.
func (p *Position) registers() absint.Registers {
	regs := absint.Unchanged()
	if p.Block != Exit {
		from := 0
		if site := p.Routine.Site(p.Block); site != nil {
			from = site.Insn
		}
		p.Routine.Plan.Follow(&regs, p.Block, from, len(p.Routine.Blocks[p.Block].Insns))
	}
	return regs
}

// ends finds what says what a loop, the block at index i of the route, comes to. It reports false
// if nothing does.
func (w *countedRoute) ends(l *countedLoop, i int) (ok bool) {
	r, last := w.from.Routine, len(w.blocks)-1
	switch {
	case l.within && w.insn == atProbe:
		return false
	case l.within:
		there := r.Plan.Before(w.blocks[i], w.insn)
		l.ends, ok = l.counter.Beginning(&there)
		return ok
	case l.counter.Exact:
		return true
	case w.leaves:
		return false
	}
	left := absint.Unchanged()
	regs := left
	for _, b := range w.blocks[i+1 : last] {
		r.pass(&regs, b, 0, len(r.Blocks[b].Insns))
	}
	if w.insn == atProbe {
		site := r.Site(w.blocks[last])
		if site == nil || site.Capture == nil || site.Capture.Kind != plan.LoopRegisters {
			return false
		}
		r.Plan.Follow(&regs, w.blocks[last], 0, site.Insn)
		return l.endsIn(site.Capture.Registers.Reg, &regs, &left)
	}
	r.pass(&regs, w.blocks[last], 0, w.insn)
	for reg := range int8(len(arch.Registers{})) {
		if l.endsIn(reg, &regs, &left) {
			return true
		}
	}
	return false
}

// endsIn takes what a register says of the counter when the loop was left, if it does.
func (l *countedLoop) endsIn(reg int8, regs, left *absint.Registers) bool {
	d, ok := absint.Distance(regs.At(reg), left.At(l.counter.Reg), l.counter.Width)
	l.ends = left.At(reg)
	l.ends.Add -= d.Add
	return ok && d.IsConstant()
}

// rounds appends to list how many rounds each loop on the route runs: of one that it ends in, how
// many have begun.
func (w *countedRoute) rounds(list []uint64, begin, end RegisterState) ([]uint64, bool) {
	ok := w.known
	for i := range w.loops {
		n, known := w.loops[i].rounds(begin, end)
		if !known || n > mostRounds {
			n, ok = 1, false
		}
		list = append(list, n)
	}
	return list, ok
}

// mostRounds is how many rounds a loop can have run: at one a nanosecond that takes 20 hours.
const mostRounds = 1 << 46

func (l *countedLoop) rounds(begin, end RegisterState) (n uint64, ok bool) {
	from, known := begin.value(l.begins)
	if !known {
		return 0, false
	}
	if l.counter.Exact && !l.within {
		return l.counter.RoundsTo(from, wire.ValueBits)
	}
	to, known := end.value(l.ends)
	switch {
	case !known:
		return 0, false
	case !l.within:
		return l.counter.RoundsBetween(to-from, wire.ValueBits)
	case l.counter.Exact:
		return l.counter.RoundsSince(from-to, from, wire.ValueBits)
	}
	return l.counter.RoundsSince(to-from, 0, wire.ValueBits)
}

// canCountAhead reports whether the registers say what each loop begins with that
// probe-free routes lead to.
func (p *Position) canCountAhead(known RegisterState) bool {
	g := p.Free()
	for i, n := range g.Nodes {
		if p.Routine.Plan.Counts(n.Block) == nil {
			continue
		}
		w := &countedRoute{from: p, blocks: g.route(i)}
		w.find()
		l := &w.loops[len(w.loops)-1]
		if _, ok := known.value(l.begins); !ok || !l.begun {
			return false
		}
	}
	return true
}

// HasLoops reports whether the route passes loops whose rounds the registers say: Counted has the
// transition then.
func (m *Transition) HasLoops() bool { return m.counted != nil }

// Counted returns the transition on a route with loops for what is known of the registers where it
// begins and where it ends, and appends to list how many rounds each loop runs. ok is false if that
// cannot be: each loop runs once then.
func (m *Transition) Counted(
	list []uint64, begin, end RegisterState,
) (*Transition, []uint64, bool) {
	rounds, ok := m.counted.rounds(list, begin, end)
	return m.counted.transition(rounds[len(list):]), rounds, ok
}

// fixed returns the operations of a transition whose loops run as often as the code says; ok is
// false if it does not say.
func (m *Transition) fixed() (emissions []Emission, ok bool) {
	if m.counted == nil {
		return m.Emissions, true
	}
	rounds, ok := m.counted.rounds(nil, RegisterState{}, RegisterState{})
	for _, a := range m.counted.transition(rounds).Emissions {
		if a.Kind == EmitRounds {
			a.Kind, a.Times = EmitPath, rounds[a.Loop]-2
		}
		if a.Kind != EmitPath || a.Times > 0 {
			emissions = append(emissions, a)
		}
	}
	return emissions, ok
}

package decoder

import (
	"wpptrace/bpf/wire"
	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

// registers are what general registers hold, by hardware number: the low wire.ValueBits of them.
type registers [16]uint64

// Hardware numbers.
const rsp, rbp = 4, 5

// registersOf is what register words say; nil, if they are not all there.
func registersOf(values []uint64) *registers {
	if len(values) != len(wire.Registers) {
		return nil
	}
	regs := &registers{}
	for i, number := range wire.Registers {
		regs[number] = values[i]
	}
	return regs
}

// held is what is known of registers at some point: all, or what a word carried.
type held struct {
	regs    *registers
	reading *plan.Registers
	carried uint64
}

// value is a function of the registers there; ok is false if it is not known.
func (h *held) value(l absint.Linear) (v uint64, ok bool) {
	v = uint64(l.Add)
	if h.reading != nil && !l.IsConstant() {
		x, ok := plan.RegistersOf(l)
		return v + uint64(l.Terms[0].Times)*h.reading.Value(h.carried), ok && x == *h.reading
	}
	for _, t := range l.Terms[:l.N] {
		reg, part, ok := t.Symbol.Register()
		if !ok || h.regs == nil {
			return 0, false
		}
		v += uint64(t.Times) * part.Of(h.regs[reg])
	}
	return v, true
}

// A lap is a loop of one block on a silent way: how many rounds it runs is told (rule 13).
type lap struct {
	counter *absint.Counter
	begins  absint.Linear // what the counter begins with, or its distance to the limit if it is Exact, by the registers where the way begins
	begun   bool          // that is known
	// What the counter comes to, or that distance, by the registers where the way ends: if the way
	// ends in the loop, or the counter is not Exact.
	ends   absint.Linear
	within bool // the way ends in the loop
}

// A laps is a silent way with such loops. The operations depend on which of them run more than once.
type laps struct {
	s      *state
	way    []int
	insn   int // where the way ends in its last block; none: at its probe, or it leaves the routine
	called bool
	leaves bool
	told   bool // what can be said of all loops
	list   []lap
	moves  map[string]*move // by loop, a byte: 1 if it runs more than once
}

const none = -1

// walk returns the move along a way to a word's block, or, if it leaves, out of the routine. It is
// nil if nothing can tell how often the loops on it run.
func (s *state) walk(way []int, called, leaves bool) *move {
	w := &laps{s: s, way: way, insn: none, called: called, leaves: leaves}
	if w.find(); !w.told {
		return nil
	}
	return w.move(nil)
}

// toSpot is the way to instruction k of the block of node i.
func (s *state) toSpot(i, k int, called bool) *laps {
	w := &laps{s: s, way: s.silentWays().way(i), insn: k, called: called}
	w.find()
	return w
}

// move is the move on which the loops run so many rounds; nil stands for once each.
func (w *laps) move(rounds []uint64) *move {
	key := make([]byte, 0, 32)
	for _, n := range rounds {
		key = append(key, byte(min(n, 2)-1))
	}
	if m := w.moves[string(key)]; m != nil {
		return m
	}
	m := newMover(w.s)
	lap := 0
	for i, b := range w.way {
		m.step(b, w.called && i == 0)
		if w.s.r.Counts(b) != nil {
			if rounds != nil && rounds[lap] > 1 {
				m.again(b, lap)
			}
			lap++
		}
	}
	if w.leaves {
		m.leave()
	}
	if len(w.list) > 0 {
		if w.moves == nil {
			w.moves = map[string]*move{}
		}
		m.laps = w
		w.moves[string(key)] = &m.move
	}
	return &m.move
}

// again runs the loop that block b is, where the mover stands, more than once.
func (m *mover) again(b, lap int) {
	m.step(b, false)
	inc, _, _, _ := m.r.numbers.Step(b, b)
	m.acts = append(m.acts, act{kind: actRounds, routine: m.r, number: m.add + inc, lap: lap})
}

// find finds what tells the rounds of the loops on the way.
func (w *laps) find() {
	r := w.s.r
	w.told = true
	regs := w.s.registers()
	for i, b := range w.way {
		c, from := r.Counts(b), 0
		switch interrupted := i == 0 && w.s.before; {
		case interrupted && c != nil:
			regs = r.Before(b, w.s.insn)
		case interrupted:
			from = w.s.insn
		}
		if c != nil {
			l := lap{counter: c, within: i == len(w.way)-1 && !w.leaves}
			l.begins, l.begun = c.Beginning(&regs)
			w.told = w.told && l.begun && w.ends(&l, i)
			w.list = append(w.list, l)
		}
		r.pass(&regs, b, from, len(r.Blocks[b].Insns))
	}
}

// pass runs instructions of block b or, if its rounds are told, all of it so often.
func (r *routine) pass(regs *absint.Registers, b, from, to int) {
	if r.Counts(b) != nil {
		r.FollowRounds(regs, b)
	} else {
		r.Follow(regs, b, from, to)
	}
}

// registers are what they hold where the state's silence begins.
func (s *state) registers() absint.Registers {
	regs := absint.Unchanged()
	if s.block != exit {
		from := 0
		if site := s.r.Site(s.block); site != nil {
			from = site.Insn
		}
		s.r.Follow(&regs, s.block, from, len(s.r.Blocks[s.block].Insns))
	}
	return regs
}

// ends finds what tells what a loop, the block at index i of the way, comes to. It reports false if
// nothing does.
func (w *laps) ends(l *lap, i int) (ok bool) {
	r, last := w.s.r, len(w.way)-1
	switch {
	case l.within && w.insn == none:
		return false
	case l.within:
		there := r.Before(w.way[i], w.insn)
		l.ends, ok = l.counter.Beginning(&there)
		return ok
	case l.counter.Exact:
		return true
	case w.leaves:
		return false
	}
	left := absint.Unchanged()
	regs := left
	for _, b := range w.way[i+1 : last] {
		r.pass(&regs, b, 0, len(r.Blocks[b].Insns))
	}
	if w.insn == none {
		site := r.Site(w.way[last])
		if site == nil || site.Capture == nil || site.Capture.Kind != plan.LoopRegisters {
			return false
		}
		r.Follow(&regs, w.way[last], 0, site.Insn)
		return l.endsIn(site.Capture.Registers.Reg, &regs, &left)
	}
	r.pass(&regs, w.way[last], 0, w.insn)
	for reg := range int8(len(registers{})) {
		if l.endsIn(reg, &regs, &left) {
			return true
		}
	}
	return false
}

// endsIn takes it that a register tells what the counter was when the loop was left, if it does.
func (l *lap) endsIn(reg int8, regs, left *absint.Registers) bool {
	d, ok := absint.Distance(regs.At(reg), left.At(l.counter.Reg), l.counter.Width)
	l.ends = left.At(reg)
	l.ends.Add -= d.Add
	return ok && d.IsConstant()
}

// rounds appends to list how many rounds each loop on the way runs: of one that it ends in, how many
// have begun.
func (w *laps) rounds(list []uint64, begin, end held) ([]uint64, bool) {
	ok := w.told
	for i := range w.list {
		n, told := w.list[i].rounds(begin, end)
		if !told || n > mostRounds {
			n, ok = 1, false
		}
		list = append(list, n)
	}
	return list, ok
}

// mostRounds is how many rounds a loop can have run: at one a nanosecond that takes 20 hours.
const mostRounds = 1 << 46

func (l *lap) rounds(begin, end held) (n uint64, ok bool) {
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

// tells reports whether the way can be told: how often the loops on it run, from what is known
// where it begins and ends, and how often those ahead will, by what is known there.
func (w *laps) tells(begin held, there *registers) bool {
	end := held{regs: there}
	_, ok := w.rounds(nil, begin, end)
	ahead := w.s.r.justBefore(w.way[len(w.way)-1], w.insn)
	ahead.known = w.s.known
	return ok && ahead.tellsAhead(end)
}

// tellsAhead reports whether what is known of registers tells what each loop begins with that
// silence leads to.
func (s *state) tellsAhead(known held) bool {
	reach := s.silentWays()
	for i, n := range reach.nodes {
		if s.r.Counts(n.block) == nil {
			continue
		}
		w := &laps{s: s, way: reach.way(i)}
		w.find()
		l := &w.list[len(w.list)-1]
		if _, ok := known.value(l.begins); !ok || !l.begun {
			return false
		}
	}
	return true
}

// run finds the rounds of the loops on a way, and the move that they make of it.
func (t *Thread) run(f *frame, m *move) *move {
	var ok bool
	if t.rounds, ok = m.laps.rounds(t.rounds[:0], f.held, t.here); !ok {
		t.anomaly("rounds of a loop that cannot be", "routine", f.r.Name, "from", f.address())
	}
	return m.laps.move(t.rounds)
}

// fixed returns what a silent run does whose loops run as often as the code says; ok is false if it
// does not say.
func (m *move) fixed() (acts []act, ok bool) {
	if m.laps == nil {
		return m.acts, true
	}
	rounds, ok := m.laps.rounds(nil, held{}, held{})
	for _, a := range m.laps.move(rounds).acts {
		if a.kind == actRounds {
			a.kind, a.times = actPath, rounds[a.lap]-2
		}
		if a.kind != actPath || a.times > 0 {
			acts = append(acts, a)
		}
	}
	return acts, ok
}

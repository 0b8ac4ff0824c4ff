package loads

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// leastGain is of how many instructions more something is known by a hit of a probe for values
// alone, in the mean of the ways from there on, for it to be worth that.
const leastGain = 0.7

// leastInside is the same behind a hidden load, and behind a routine that returns what external
// code has: there are more of these, and many are not hidden on all ways to them.
const leastInside = 2

// mostAway is how many results may lie between such a place and the next hit: of one further away
// it is not said that it shows what is not known, for what that was stored through is not known
// either.
const mostAway = 64

// leastStepped is the same of a probe that is single-stepped, where these are admitted.
const leastStepped = 0.1

// kept are the registers that external code leaves as they were.
const kept = x86.CalleeSaved | 1<<x86.RSP

// extras finds the probes for values alone of a routine, in the order of their blocks: where the
// kernel emulates an instruction for the first time behind where external code may have come to an
// end, or called. They are there only where they gain much: where the next hits of the plan do not
// show what that has left in registers, or what was loaded before them. calls says how often traced
// routines call this one: the more of its activations begin there, the less there is to gain.
// outside says of routines whether they return what external code has, and hidden has the hidden
// loads of this one.
func (m *maker) extras(r *plan.Routine, calls int, outside []bool, hidden []spot) {
	x := placer{m: m, r: r, taken: map[uint64]bool{}}
	at := func(block int) spot { return spot{place: place{int32(r.ID), int32(block)}} }
	if r.ExternalCallers() {
		x.from(gap{from: at(r.Entry), left: allRegisters &^ (1 << x86.RSP)},
			leastGain*float64(1+calls))
	}
	for b := range r.Blocks {
		if !r.Blocks[b].CallReturns() {
			continue
		}
		g := gap{from: at(r.Blocks[b].Succ[0]), left: allRegisters &^ kept}
		switch kind, callee := r.Callee(b); {
		case kind == plan.External, kind == plan.Harmless, kind == plan.Unknown:
			x.from(g, leastGain)
		case kind == plan.Known && outside[callee.ID]:
			g.left, g.inside = 1<<x86.RAX, true
			x.from(g, leastInside)
		}
	}
	for _, load := range hidden {
		x.from(gap{from: load, hidden: true, inside: true}, leastInside)
	}
	m.extra = append(m.extra, x.list...)
}

// callsOf says of each routine how many calls of it, and jumps to it, there are in traced ones.
func callsOf(p *plan.Plan) []int {
	calls := make([]int, len(p.Routines))
	for _, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		for b := range r.Blocks {
			if kind, callee := r.Callee(b); kind == plan.Known {
				calls[callee.ID]++
			}
		}
	}
	return calls
}

// add has programs end at a probe for values alone.
func (x *facts) add(s Site) {
	if x.extras == nil {
		x.extras = map[int][]int{}
	}
	list := x.extras[s.Block]
	if i, has := slices.BinarySearch(list, s.Insn); !has {
		x.extras[s.Block] = slices.Insert(list, i, s.Insn)
	}
}

// A placer finds the extra sites of a routine.
type placer struct {
	m     *maker
	r     *plan.Routine
	taken map[uint64]bool
	list  []Site
}

// A gap is where something is not known from an instruction on.
type gap struct {
	from   spot
	left   x86.Set // registers that are not known
	hidden bool    // what hidden loads from there on read is not known
	// external code has not run right before: no hit is sure to read what has been stored since
	inside bool
}

// from places a probe behind where a gap begins, if it gains enough.
func (x *placer) from(g gap, least float64) {
	at, ok := x.next(g, x86.Emulated)
	without := x.m.lost(g, nil)
	with := without
	if ok && without >= least {
		with = x.m.lost(g, &at)
	}
	if without-with < least {
		ok, with = false, without
	}
	if x.m.o.Complete && !g.inside && with >= leastStepped {
		if dear, has := x.next(g, x86.Stepped); has {
			at, ok = dear, true
		}
	}
	if !ok {
		return
	}
	q := &x.r.Blocks[at.block].Insns[at.insn]
	x.taken[q.Addr] = true
	x.list = append(x.list, Site{Addr: q.Addr, Routine: x.r.ID, Block: int(at.block), Insn: at.insn,
		Condition: q.Condition(), Stepped: q.Class(x.r.Code(q)) != x86.Emulated})
}

// next finds the first instruction of a gap that a probe of a class may stand at, or of a cheaper
// one; ok is false if another probe comes before, or the way parts.
func (x *placer) next(g gap, class x86.Class) (at spot, ok bool) {
	block, insn := int(g.from.block), g.from.insn
	for range len(x.r.Blocks) {
		b := &x.r.Blocks[block]
		site := x.r.Site(block)
		for i := insn; i < len(b.Insns); i++ {
			q := &b.Insns[i]
			if site != nil && site.Insn == i || x.taken[q.Addr] {
				return at, false
			}
			if is := q.Class(x.r.Code(q)); is == x86.Emulated || is == class {
				return spot{place{int32(x.r.ID), int32(block)}, i}, true
			}
		}
		if b.End != cfg.Fall && b.End != cfg.Jmp {
			return at, false
		}
		block, insn = b.Succ[0], 0
	}
	return at, false
}

// lost is of how many instructions something is not known by the next hit, in the mean of the ways
// from a gap on, as if there were a probe at a spot; nil: nowhere.
func (m *maker) lost(g gap, until *spot) float64 {
	m.follow.until, m.follow.traces = until, true
	w := m.follow.behind(g.from)
	m.follow.until, m.follow.traces = nil, false
	return m.lostOn(w, nil, nil, nil, &g)
}

// lostOn is lost of the ways that begin with one; loads, results and what is equal are those of the
// way to it.
func (m *maker) lostOn(w *way, loads []load, results []result, equal []*compared, g *gap,
) (n float64) {
	if w.equal != nil {
		equal = append(equal[:len(equal):len(equal)], w.equal)
	}
	loads = append(loads[:len(loads):len(loads)], w.loads...)
	results = append(results[:len(results):len(results)], w.results...)
	taken := 0
	for _, next := range w.next {
		if !next.dies {
			n += m.lostOn(next, loads, results, equal, g)
			taken++
		}
	}
	n /= float64(max(taken, 1))
	if len(w.next) > 0 || w.back == nil || w.cut && !g.inside {
		return n
	}
	by, readable := allRegisters, 0 // loads that the next hit may read, from there on
	for i := range loads {
		if loads[i].need == behindOther {
			readable = i + 1
		}
	}
	switch { // some code runs up to the next hit
	case w.ends == returned && m.follow.facts[w.routine].returnsOut:
		by, readable = 0, len(loads)+1
	case w.ends != probed: // and nobody reads there what was loaded before
		by, readable = kept|1<<x86.RAX, len(loads)+1
	}
	m.earlier.ns.reset()
	if g.inside && len(results) > mostAway {
		by = 0
	}
	stored := by == allRegisters && !g.inside
	t := newTranslator(&m.follow.ns, &m.earlier.ns, w, by, stored)
	// by what there is at the hit alone
	later := newTranslator(&m.follow.ns, &m.earlier.ns, w, by, stored)
	for reg := range 16 {
		if !g.left.Has(int8(reg)) {
			t.held[firstReg+int32(reg)] = held(reg)
		}
	}
	if t.blind = readable > 0 && !g.hidden; g.hidden { // hits before read the others
		for i := range loads {
			l := &loads[i]
			isShown := w.ends == probed && !w.changes(l) && later.value(l.at).isKnown()
			if m.hiding[l.pc] && l.at.isKnown() && !isShown {
				t.unread = append(t.unread, l.at)
			}
		}
	}
	t.reset()
	for _, x := range equal {
		t.equate(x)
	}
	lost := map[uint64]bool{}
	has := map[uint64]bool{} // instructions with a result that is known
	for _, x := range results {
		switch {
		case !x.is.isKnown():
		case t.value(x.is).isKnown():
			has[x.pc] = true
		default:
			lost[x.pc] = true
		}
	}
	for i := range loads {
		l := &loads[i]
		if !l.at.isKnown() {
			continue
		}
		isRead := l.need != toRead || has[l.pc] ||
			i >= readable && !w.changes(l) && later.value(l.at).isKnown()
		if g.hidden {
			isRead = has[l.pc] || !slices.Contains(t.unread, l.at)
		}
		if !isRead || !t.value(l.at).isKnown() {
			lost[l.pc] = true
		}
	}
	return float64(len(lost))
}

// equate has what is compared be known by one another, where that has come to nothing.
func (t *translator) equate(x *compared) {
	a, b := x.a, x.b
	switch {
	case x.how == byResult || x.how == byBits && a == b:
		b = constant(0)
	case x.how != byDistance:
		return
	}
	for _, v := range [...][2]value{{a, b}, {b, a}} {
		if is := t.value(v[1]); v[0].isKnown() && is.isKnown() && !t.value(v[0]).isKnown() {
			t.held[v[0].node] = is.plus(-v[0].add)
			t.reset()
			return
		}
	}
}

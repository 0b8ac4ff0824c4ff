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

// leastStepped is the same of a probe that is single-stepped, where these are admitted.
const leastStepped = 0.1

// kept are the registers that external code leaves as they were.
const kept = x86.CalleeSaved | 1<<x86.RSP

// extras finds the probes for values alone of a routine, in the order of their blocks: where the
// kernel emulates an instruction for the first time behind where external code may have come to an
// end, or called. They are there only where they gain much: where the next hits of the plan do not
// show what that has left in registers, or what was loaded before them. calls says how often traced
// routines call this one: the more of its activations begin there, the less there is to gain.
func (m *maker) extras(r *plan.Routine, calls int) {
	x := placer{m: m, r: r, taken: map[uint64]bool{}}
	if r.ExternalCallers() {
		x.from(r.Entry, allRegisters&^(1<<x86.RSP), leastGain*float64(1+calls))
	}
	for b := range r.Blocks {
		if !r.Blocks[b].CallReturns() {
			continue
		}
		switch kind, _ := r.Callee(b); kind {
		case plan.External, plan.Harmless, plan.Unknown:
			x.from(r.Blocks[b].Succ[0], allRegisters&^kept, leastGain)
		}
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

// from places a probe behind where external code comes to its end, at a block, if it gains enough.
// left are the registers that it may have changed.
func (x *placer) from(block int, left x86.Set, least float64) {
	first := place{int32(x.r.ID), int32(block)}
	at, ok := x.next(block, x86.Emulated)
	without := x.m.lost(first, left, nil)
	with := without
	if ok && without >= least {
		with = x.m.lost(first, left, &at)
	}
	if without-with < least {
		ok, with = false, without
	}
	if x.m.o.Complete && with >= leastStepped {
		if dear, has := x.next(block, x86.Stepped); has {
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

// next finds the first instruction from a block on that a probe of a class may stand at, or of a
// cheaper one; ok is false if another probe comes before, or the way parts.
func (x *placer) next(block int, class x86.Class) (at spot, ok bool) {
	for range len(x.r.Blocks) {
		b := &x.r.Blocks[block]
		site := x.r.Site(block)
		for i := range b.Insns {
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
		block = b.Succ[0]
	}
	return at, false
}

// lost is of how many instructions something is not known by the next hit, in the mean of the ways
// from a place on, as if there were a probe at a spot; nil: nowhere. left are the registers that
// are not known at the place.
func (m *maker) lost(from place, left x86.Set, until *spot) float64 {
	m.follow.until, m.follow.traces = until, true
	w := m.follow.behind(from)
	m.follow.until, m.follow.traces = nil, false
	return m.lostOn(w, nil, nil, nil, left)
}

// lostOn is lost of the ways that begin with one; loads, results and what is equal are those of the
// way to it.
func (m *maker) lostOn(w *way, loads []load, results []result, equal []*compared, left x86.Set,
) (n float64) {
	if w.equal != nil {
		equal = append(equal[:len(equal):len(equal)], w.equal)
	}
	loads = append(loads[:len(loads):len(loads)], w.loads...)
	results = append(results[:len(results):len(results)], w.results...)
	taken := 0
	for _, next := range w.next {
		if !next.dies {
			n += m.lostOn(next, loads, results, equal, left)
			taken++
		}
	}
	n /= float64(max(taken, 1))
	if len(w.next) > 0 || w.back == nil {
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
	t := newTranslator(&m.follow.ns, &m.earlier.ns, w, by)
	later := newTranslator(&m.follow.ns, &m.earlier.ns, w, by) // by what there is at the hit alone
	for reg := range 16 {
		if !left.Has(int8(reg)) {
			t.held[firstReg+int32(reg)] = held(reg)
		}
	}
	t.blind = readable > 0
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

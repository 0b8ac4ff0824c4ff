package loads

import (
	"cmp"
	"slices"

	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// A resumption is where code goes on behind other code, or begins, and what comes of it up to the
// next probe.
type resumption struct {
	at      spot
	call    *plan.Routine // behind a call of that; nil: external code may have run
	isEntry bool
	hidden  bool   // what is not known is what the instruction there loads
	probes  []spot // before which something is read that they may read
	stores  []spot // those before which something is only stored
	// routines that may return before any probe
	returns []int32
}

// resumptions are those behind all calls, and entries that external code calls.
func resumptions(p *plan.Plan) (list []resumption) {
	for id, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		if r.ExternalCallers() {
			list = append(list, resumption{isEntry: true,
				at: spot{place: place{int32(id), int32(r.Entry)}}})
		}
		for b := range r.Blocks {
			if r.Blocks[b].CallReturns() {
				_, callee := r.Callee(b)
				list = append(list, resumption{call: callee,
					at: spot{place: place{int32(id), int32(r.Blocks[b].Succ[0])}}})
			}
		}
	}
	return list
}

// examineBefore finds out what comes of a resumption.
func (m *maker) examineBefore(x *resumption) {
	m.follow.ends = true
	m.follow.behind(x.at).ahead(nil, func(w *way, loads []load) {
		isRead := slices.ContainsFunc(loads, func(l load) bool { return l.need == toRead })
		switch {
		case w.ends == returned && !slices.Contains(x.returns, w.routine):
			x.returns = append(x.returns, w.routine)
		case w.ends == probed && isRead && !slices.Contains(x.probes, w.probe):
			x.probes = append(x.probes, w.probe)
		case w.ends == probed && !isRead && len(w.stores) > 0 &&
			!slices.Contains(x.stores, w.probe):
			x.stores = append(x.stores, w.probe)
		}
	})
}

// A spot is an instruction.
type spot struct {
	place
	insn int
}

func (s spot) compare(with spot) int {
	return cmp.Or(cmp.Compare(s.routine, with.routine), cmp.Compare(s.block, with.block),
		cmp.Compare(s.insn, with.insn))
}

// An origin is where code begins whose loads a later hit reads, or that one only that is hidden.
type origin struct {
	spot
	hidden bool
}

// beforeHits lists by probes the places from which the code up to them runs behind external code:
// routines may have returned since without a probe. Those that only store come last.
func beforeHits(all []resumption, routines int) map[spot][]origin {
	list, stores := map[spot][]origin{}, map[spot][]origin{}
	callers := make([][]*resumption, routines)
	var left []*resumption
	for i := range all {
		if x := &all[i]; x.call == nil {
			left = append(left, x)
		} else {
			callers[x.call.ID] = append(callers[x.call.ID], x)
		}
	}
	for ; len(left) > 0; left = left[1:] {
		from := origin{left[0].at, left[0].hidden}
		for _, at := range left[0].probes {
			list[at] = append(list[at], from)
		}
		for _, at := range left[0].stores {
			stores[at] = append(stores[at], from)
		}
		for _, routine := range left[0].returns {
			left = append(left, callers[routine]...)
			callers[routine] = nil
		}
	}
	for at, places := range stores {
		for _, p := range places {
			if !slices.Contains(list[at], p) {
				list[at] = append(list[at], p)
			}
		}
	}
	return list
}

// A translator puts what is known in terms of one point into terms of a later one, by what the
// registers hold there, and memory where the way to there has stored what no register holds.
type translator struct {
	from, to *nodes
	held     map[int32]value // by nodes of from: what holds them
	done     map[int32]value
	stored   []load  // the places of memory among held
	stores   []store // on the way: what was there before is not there any more
	blind    bool    // memory is not read there
	unread   []value // nor what is loaded from there
}

// stackGuard is where a thread has, beyond fs, the number that guards return addresses: it stays.
const stackGuard = 0x28

// newTranslator returns one for the end of a way, by what registers, or some of them, hold there;
// stored: and memory where the way has stored something.
func newTranslator(from, to *nodes, w *way, by x86.Set, stored bool) *translator {
	t := &translator{from: from, to: to, held: map[int32]value{}, stores: w.stores}
	t.reset()
	for reg, v := range w.back {
		if by.Has(int8(reg)) && v.isKnown() && !v.isConstant() {
			t.held[v.node] = held(reg).plus(-v.add)
		}
	}
	for i := len(w.stores) - 1; i >= 0 && stored; i-- {
		if s := &w.stores[i]; !overlap(w.stores[i+1:], s.at, s.size) {
			t.hold(s)
		}
	}
	return t
}

// allRegisters are the general ones.
const allRegisters = x86.Set(0xffff)

func (t *translator) reset() {
	t.done = map[int32]value{nothing: {}, unknown: {node: unknown}, biasNode: {node: biasNode},
		fsNode: {node: fsNode}}
}

// hold has what a store has left in memory be known by that, if it is by nothing else.
func (t *translator) hold(s *store) {
	if !s.is.isKnown() || s.is.isConstant() || s.size < 4 || t.value(s.is).isKnown() {
		return
	}
	l := load{at: t.value(s.at), size: s.size}
	if v := t.to.of(node{op: Fetch, size: s.size, a: l.at}); v.isKnown() {
		t.held[s.is.node] = v.plus(-s.is.add)
		t.stored = append(t.stored, l)
		t.reset()
	}
}

func (t *translator) value(v value) value { return t.node(v.node).plus(v.add) }

func (t *translator) node(id int32) value {
	if v, ok := t.done[id]; ok {
		return v
	}
	v, ok := t.held[id]
	if !ok {
		v = t.make(id)
	}
	t.done[id] = v
	return v
}

// make computes a node that nothing holds.
func (t *translator) make(id int32) value {
	if id < fixed {
		return value{node: unknown}
	}
	switch n := t.from.list[id]; n.op {
	case Sum:
		a, b := t.value(n.a), t.value(n.b)
		return t.to.low(t.to.sum(a, b, n.scale), n.size)
	case Extend:
		return t.to.signed(t.value(n.a), n.size)
	case Fetch:
		if t.blind && n.a != (value{fsNode, stackGuard}) || overlap(t.stores, n.a, n.size) {
			return value{node: unknown}
		}
		if slices.Contains(t.unread, n.a) {
			return value{node: unknown}
		}
		n.a = t.value(n.a)
		return t.to.of(n)
	case either:
		return value{node: unknown}
	default:
		return t.to.compute(n.op, t.value(n.a), t.value(n.b), n.size)
	}
}

// mostBehind is how many reads a hit makes of what was loaded before it, and mostFrom how many
// places it has them for.
const (
	mostBehind = 8
	mostFrom   = 16
)

// before makes the program that reads at a probe what was loaded since external code.
func (m *maker) before(at spot, from []origin) {
	first := &m.earlier
	m.follow.ns.reset()
	all := &way{}
	for _, p := range from[:min(len(from), mostFrom)] {
		first.behind(p.spot).ahead(nil, func(w *way, loads []load) {
			if w.ends != probed || w.probe != at {
				return
			}
			t := newTranslator(&first.ns, &m.follow.ns, w, allRegisters, true)
			add := func(l load) {
				if l.pc = 0; l.at.isKnown() && !slices.Contains(all.loads, l) {
					all.loads = append(all.loads, l)
				}
			}
			for _, l := range loads {
				if l.need == toRead && !w.changes(&l) && (!p.hidden || m.hiding[l.pc]) {
					l.at = t.value(l.at)
					add(l)
				}
			}
			for _, l := range t.stored {
				add(l)
			}
		})
	}
	var list [2]program
	m.program(all, &list[0])
	m.made = append(m.made, list)
}

// ahead visits the ends of ways, with all loads on each.
func (w *way) ahead(before []load, visit func(w *way, loads []load)) {
	all := append(before[:len(before):len(before)], w.loads...)
	if len(w.next) == 0 {
		visit(w, all)
	}
	for _, n := range w.next {
		n.ahead(all, visit)
	}
}

// changes reports whether the way has stored, at its end, to all of where it has loaded, but for
// what the instruction that loads has made of it.
func (w *way) changes(l *load) bool {
	return slices.ContainsFunc(w.stores, func(s store) bool {
		d := l.at.add - s.at.add
		return s.pc != l.pc && s.at.node == l.at.node && d >= 0 &&
			d+int64(l.size) <= int64(s.size)
	})
}

func overlap(list []store, at value, size uint8) bool {
	return slices.ContainsFunc(list, func(s store) bool { return s.overlaps(at, size) })
}

// overlaps reports whether a place is surely one of those that are stored to.
func (s *store) overlaps(at value, size uint8) bool {
	d := at.add - s.at.add
	return s.at.node == at.node && d < int64(s.size) && d+int64(size) > 0
}

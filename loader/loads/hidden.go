package loads

import (
	"slices"

	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// hide finds the hidden loads on the ways from a site: those whose addresses no program of a hit
// there computes, so that the next hit has to show what they have loaded.
func (m *maker) hide(s *Site) {
	outcomes := 2
	if s.Condition == plan.NoCondition {
		outcomes = 1
	}
	for outcome := range outcomes {
		m.noteHidden(func() *way { return m.follow.from(s, outcome) })
	}
}

// hideBehind finds them behind a call. lost: no program computes what that has returned.
func (m *maker) hideBehind(at place, lost bool) {
	m.noteHidden(func() *way {
		st, w := m.follow.begin(), m.follow.way()
		if lost {
			st.regs[x86.RAX] = value{node: unknown}
		}
		m.follow.follow(w, st, at, 0, false, 0)
		return w
	})
}

// noteHidden notes the hidden loads on some ways, and which routines return on them what no program
// computes.
func (m *maker) noteHidden(ways func() *way) {
	m.follow.hides = true
	ways().ahead(nil, func(w *way, _ []load) {
		if w.ends == returned && !m.follow.ns.isSmall(w.back[x86.RAX], mostReturned) {
			m.losing = append(m.losing, w.routine)
		}
	})
	m.follow.hides = false
	m.hidden, m.follow.hidden = append(m.hidden, m.follow.hidden...), m.follow.hidden[:0]
}

// mostReturned is of how many nodes what a routine returns may be made for programs to compute it
// behind the return, too.
const mostReturned = 40

// isSmall reports whether a value is known, and made of so many nodes at most.
func (ns *nodes) isSmall(v value, most int) bool {
	seen := map[int32]bool{}
	var visit func(id int32) bool
	visit = func(id int32) bool {
		if id < fixed || seen[id] {
			return id != unknown
		}
		seen[id] = true
		n := &ns.list[id]
		return len(seen) <= most && visit(n.a.node) && visit(n.b.node)
	}
	return visit(v.node)
}

func isHidden(l load) bool { return l.need == notComputable }

// hiddenLoads are those of all ways from sites, in their order.
func hiddenLoads(p *plan.Plan, all []Site, known []facts, o *Options) (list []spot) {
	loses := make([]bool, len(p.Routines))
	take := func(makers []*maker) {
		for _, m := range makers {
			list = append(list, m.hidden...)
			for _, routine := range m.losing {
				loses[routine] = true
			}
		}
	}
	take(inPieces(len(all), func(m *maker, i int) { m.hide(&all[i]) }, p, known, o))
	calls := continuations(p)
	const found, foundLost = 1, 2
	state := make([]uint8, len(calls))
	for {
		var todo []int
		for i := range calls {
			now := uint8(found)
			if c := calls[i].callee; c != nil && loses[c.ID] {
				now = foundLost
			}
			if now > state[i] {
				state[i], todo = now, append(todo, i)
			}
		}
		if len(todo) == 0 {
			break
		}
		take(inPieces(len(todo), func(m *maker, i int) {
			m.hideBehind(calls[todo[i]].from, state[todo[i]] == foundLost)
		}, p, known, o))
	}
	slices.SortFunc(list, spot.compare)
	return slices.Compact(list)
}

// addressesOf are those of instructions.
func addressesOf(list []spot, p *plan.Plan) map[uint64]bool {
	all := make(map[uint64]bool, len(list))
	for _, s := range list {
		all[p.Routines[s.routine].Blocks[s.block].Insns[s.insn].Addr] = true
	}
	return all
}

// ofRoutine are the spots of one routine in a sorted list.
func ofRoutine(list []spot, routine int) []spot {
	first := func(routine int) int {
		i, _ := slices.BinarySearchFunc(list, spot{place: place{routine: int32(routine)}},
			spot.compare)
		return i
	}
	return list[first(routine):first(routine+1)]
}

// returnsOutside says of each routine whether it may return, before any probe, what external code
// has returned to it, or to what it calls.
func returnsOutside(p *plan.Plan, known []facts, o *Options) []bool {
	all := resumptions(p)
	inPieces(len(all), func(m *maker, i int) {
		x := &all[i]
		if x.isEntry {
			return
		}
		m.follow.ends = true
		m.follow.behind(x.at).ahead(nil, func(w *way, _ []load) {
			if w.ends == returned && w.back[x86.RAX] == held(int(x86.RAX)) &&
				!slices.Contains(x.returns, w.routine) {
				x.returns = append(x.returns, w.routine)
			}
		})
	}, p, known, o)
	is := make([]bool, len(p.Routines))
	for changed := true; changed; {
		changed = false
		for i := range all {
			if x := &all[i]; x.call != nil && !is[x.call.ID] {
				continue
			}
			for _, routine := range all[i].returns {
				changed = changed || !is[routine]
				is[routine] = true
			}
		}
	}
	return is
}

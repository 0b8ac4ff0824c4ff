package loads

import (
	"slices"

	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// witnesses adds probes for values alone where a hit would have to make more reads than it can:
// each stands, before the first load that is left out, where the kernel emulates an instruction.
// What counts are the loads on its own way: where the program does not know which way is taken, it
// reads what all of them load, and a probe on one would be hit for few.
func witnesses(all []Site, p *plan.Plan, known []facts, o *Options) []Site {
	const mostRounds = 200 // of which each cuts some stretches of code in two
	pending := make([]int, len(all))
	for i := range pending {
		pending[i] = i
	}
	taken := map[uint64]bool{}
	for round := 0; round < mostRounds && len(pending) > 0; round++ {
		found := inPieces(len(pending), func(m *maker, i int) {
			if m.witness(&all[pending[i]]) {
				m.again = append(m.again, pending[i])
			}
		}, p, known, o)
		pending = pending[:0]
		for _, m := range found {
			pending = append(pending, m.again...)
			for _, s := range m.extra {
				if taken[s.Addr] {
					continue
				}
				taken[s.Addr] = true
				known[s.Routine].add(s)
				pending, all = append(pending, len(all)), append(all, s)
			}
		}
	}
	return all
}

// A passed instruction is one that the kernel emulates.
type passed struct {
	at    spot
	depth int // calls that have not returned
	loads int // how many came before it on its way
}

// pass notes that an instruction has been come to, if a witness may stand there.
func (f *follower) pass(w *way, st *state, r *plan.Routine, at spot) {
	q := &r.Blocks[at.block].Insns[at.insn]
	if q.Class(r.Code(q)) == x86.Emulated {
		w.passed = append(w.passed, passed{at, len(st.calls), len(w.loads)})
	}
}

// witness finds the witnesses of a site, one on each way at most, and reports whether it has any.
func (m *maker) witness(s *Site) bool {
	m.follow.notes = true
	defer func() { m.follow.notes = false }()
	before := len(m.extra)
	outcomes := 2
	if s.Condition == plan.NoCondition {
		outcomes = 1
	}
	for outcome := range outcomes {
		if w := m.follow.from(s, outcome); w.most() > fewest {
			m.steps(w)
			m.between(w, nil, 0)
		}
	}
	return len(m.extra) > before
}

// most is how many loads there are on any way.
func (w *way) most() int {
	n := 0
	for _, next := range w.next {
		n = max(n, next.most())
	}
	return len(w.loads) + n
}

// fewest is how many loads have to come before the one that is left out, for a hit to be worth it.
const fewest = 12

// between finds witnesses on the ways that begin with one; before are the instructions that were
// passed on the way to it, and so many loads.
func (m *maker) between(w *way, before []passed, loads int) {
	all := before[:len(before):len(before)]
	for _, x := range w.passed {
		x.loads += loads
		all = append(all, x)
	}
	for i := range w.loads {
		if w.isLeft(&w.loads[i]) {
			all = slices.DeleteFunc(all, func(x passed) bool { return x.loads > loads+i })
			m.choose(all, loads+i)
			return
		}
	}
	for _, n := range w.next {
		m.between(n, all, loads+len(w.loads))
	}
}

// isLeft reports whether a load of the way is left out.
func (w *way) isLeft(l *load) bool {
	return l.left || l.need == toRead && !l.past && slices.ContainsFunc(w.groups,
		func(g *group) bool { return g.out && g.holds(l.at, l.size) })
}

// choose has a witness stand at one of the instructions before a load that so many came before: in
// the second half of these, where fewest calls have not returned, as what they call may be called
// often.
func (m *maker) choose(list []passed, loads int) {
	var best *passed
	for i := range list {
		x := &list[i]
		if loads >= fewest && x.loads >= loads/2 && (best == nil || x.depth <= best.depth) {
			best = x
		}
	}
	if best == nil {
		return
	}
	r := m.follow.plan.Routines[best.at.routine]
	q := &r.Blocks[best.at.block].Insns[best.at.insn]
	m.extra = append(m.extra, Site{Addr: q.Addr, Routine: r.ID, Block: int(best.at.block),
		Insn: best.at.insn, Condition: q.Condition()})
}

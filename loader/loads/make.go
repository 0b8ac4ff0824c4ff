package loads

import (
	"errors"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// Options say what a plan may cost.
type Options struct {
	// MostReads is how many reads a hit makes at most; 0: the greatest number there is, MostReads.
	MostReads int
	// Extra admits probes for values alone, which only an executable may have.
	Extra bool
	// Complete admits single-stepped ones among these, where nothing else shows what external code
	// has left.
	Complete bool
}

// Make makes the plan of loads for the plan of one image, on all CPUs. Cost: 0.3 s for a program of
// 20,000 sites on one CPU.
func Make(p *plan.Plan, o Options) (*Plan, error) {
	if len(p.Parts) != 1 {
		return nil, errors.New("plan loads: the plan is of several images: plan those of each")
	}
	if o.MostReads <= 0 || o.MostReads > MostReads {
		o.MostReads = MostReads
	}
	known, all, hidden, list := prepare(p, &o)
	behind := inPieces(len(list), func(m *maker, i int) { m.behind(list[i].from) }, p, known, &o)
	spots := make([]spot, len(all))
	for i := range all {
		spots[i] = spot{place{int32(all[i].Routine), int32(all[i].Block)}, all[i].Insn}
	}
	resumed := resumptions(p)
	for _, at := range hidden {
		resumed = append(resumed, resumption{at: at, hidden: true})
	}
	inPieces(len(resumed), func(m *maker, i int) { m.examineBefore(&resumed[i]) }, p, known, &o)
	from := beforeHits(resumed, len(p.Routines))
	few := o
	few.MostReads = min(o.MostReads, mostBehind)
	hiding := addressesOf(hidden, p)
	before := inPieces(len(all), func(m *maker, i int) {
		m.hiding = hiding
		m.before(spots[i], from[spots[i]])
	}, p, known, &few)
	sites := inPieces(len(all), func(m *maker, i int) { m.site(&all[i]) }, p, known, &o)

	made := &Plan{Base: p, Extra: all[len(p.Sites):], After: map[uint64]uint32{}}
	x := newKnots()
	for _, list := range [...][]*maker{sites, before, behind} {
		for _, m := range list {
			m.merge(x)
		}
	}
	a := newAssembler(x)
	for _, m := range sites {
		for i := range m.made {
			x, y := m.made[i][0], m.made[i][1]
			made.Looks = append(made.Looks, Look{Leaves: [2]bool{x.leaves, y.leaves},
				First: [2]uint32{a.program(x.first), a.program(y.first)}})
		}
	}
	first := made.Looks
	for _, m := range before {
		for i := range m.made {
			first[0].Behind = a.program(m.made[i][0].first)
			first = first[1:]
		}
	}
	for _, m := range behind {
		for i := range m.made {
			made.After[list[0].address] = max(a.program(m.made[i][0].first), nothingBehind)
			list = list[1:]
		}
	}
	made.Steps, made.Cases = a.finish()
	return made, nil
}

// prepare finds what programs are made of: what is known of routines, where probes stand, those of
// the plan first, and where programs go on.
func prepare(p *plan.Plan, o *Options) (known []facts, all []Site, hidden []spot,
	list []continuation) {
	known = make([]facts, len(p.Routines))
	exported := exports(p)
	parallel.Each(len(known), func(i int) {
		known[i] = factsOf(p.Routines[i])
		known[i].stubs = stubsOf(p.Routines[i], exported)
	})
	all = make([]Site, len(p.Sites))
	for i := range p.Sites {
		s := &p.Sites[i]
		all[i] = Site{Addr: s.Addr, Routine: s.Routine, Block: s.Block, Insn: s.Insn,
			Condition: s.Condition, Stepped: s.Stepped}
	}
	calls := callsOf(p)
	for i, r := range p.Routines {
		known[i].returnsOut = r.ExternalCallers() && calls[i] == 0
	}
	hidden = hiddenLoads(p, all, known, o)
	if o.Extra {
		outside, hiding := returnsOutside(p, known, o), addressesOf(hidden, p)
		found := inPieces(len(p.Routines), func(m *maker, i int) {
			m.hiding = hiding
			if r := p.Routines[i]; r.Traced() {
				m.extras(r, calls[i], outside, ofRoutine(hidden, i))
			}
		}, p, known, o)
		for _, m := range found {
			all = append(all, m.extra...)
		}
		for _, s := range all[len(p.Sites):] {
			known[s.Routine].add(s)
		}
		all = witnesses(all, p, known, o)
	}
	list = continuations(p)
	inPieces(len(list), func(m *maker, i int) { m.examine(&list[i]) }, p, known, o)
	f := finder{plan: p, facts: known}
	f.find(list)
	return known, all, hidden, list
}

// inPieces has makers take numbers up to n on all CPUs, each some in their order.
func inPieces(n int, turn func(m *maker, i int), p *plan.Plan, known []facts, o *Options,
) (list []*maker) {
	list = make([]*maker, (n+atOnce-1)/atOnce)
	parallel.Each(len(list), func(k int) {
		m := &maker{o: o, follow: follower{plan: p, facts: known},
			earlier: follower{plan: p, facts: known, ends: true}}
		m.emit.ns, m.knots = &m.follow.ns, newKnots()
		for i := k * atOnce; i < min((k+1)*atOnce, n); i++ {
			turn(m, i)
		}
		m.follow, m.earlier, m.emit = follower{}, follower{}, emitter{} // are large
		list[k] = m
	})
	return list
}

// atOnce is how many programs one CPU makes at a time.
const atOnce = 256

// A maker makes some programs.
type maker struct {
	o       *Options
	follow  follower
	earlier follower // of code before a hit
	emit    emitter
	knots   *knots
	made    [][2]program
	extra   []Site
	hidden  []spot
	losing  []int32         // routines: see noteHidden
	hiding  map[uint64]bool // instructions with hidden loads
	again   []int           // which of what it was to make sites for has got some
}

// A program is what is made for one outcome of a site.
type program struct {
	first  int32 // knot
	leaves bool
}

// merge adds the programs of a maker to others.
func (m *maker) merge(x *knots) {
	moved := x.merge(m.knots)
	for i := range m.made {
		for outcome := range m.made[i] {
			p := &m.made[i][outcome]
			p.first = moved[p.first]
		}
	}
	m.knots = nil
}

// site makes the programs of a site.
func (m *maker) site(s *Site) {
	var list [2]program
	outcomes := 2
	if s.Condition == plan.NoCondition {
		outcomes = 1
	}
	for outcome := range outcomes {
		m.program(m.follow.from(s, outcome), &list[outcome])
	}
	m.made = append(m.made, list)
}

// behind makes the program for the code behind a call.
func (m *maker) behind(at place) {
	var list [2]program
	m.emit.alone = true
	m.program(m.follow.behind(spot{place: at}), &list[0])
	m.made = append(m.made, list)
}

func (m *maker) program(w *way, p *program) {
	p.leaves = m.steps(w)
	p.first = m.knots.program(m.emit.steps, m.emit.cases)
}

// steps has the emitter make the steps of a program.
func (m *maker) steps(w *way) (leaves bool) {
	g := &grouper{ns: m.emit.ns, o: m.o}
	g.group(w, true)
	return m.emit.program(w)
}

// examine finds out what programs behind a call do.
func (m *maker) examine(c *continuation) {
	w := m.follow.behind(spot{place: c.from})
	c.reads, c.returns = w.hasReads(), w.mayReturn()
	m.steps(w)
	for _, s := range m.emit.steps {
		if s.Op == End || s.Op == Leave || s.Op == Pick {
			continue
		}
		c.picks = c.picks || s.Op == Branch || s.Op == Switch || s.Op == Fetch && s.A >= FirstResult
		for _, cell := range [...]uint8{s.A, s.B} {
			if cell < ImageBias {
				c.uses |= x86.SetOf(int8(cell))
			}
		}
	}
}

func (w *way) mayReturn() bool {
	return w.ends == returned ||
		slices.ContainsFunc(w.next, func(n *way) bool { return n.mayReturn() })
}

package loads

import (
	"encoding/binary"
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
}

// Make makes the plan of loads for the plan of one image, on all CPUs. Cost: 0.3 s for a program of
// 20,000 sites on one CPU.
func Make(p *plan.Plan, o Options) (*Plan, error) {
	made, _, err := makePlan(p, o, false)
	return made, err
}

// makePlan makes a plan, and its figures if they are asked for.
func makePlan(p *plan.Plan, o Options, figures bool) (*Plan, Figures, error) {
	if len(p.Parts) != 1 {
		return nil, nil, errors.New("plan loads: the plan is of several images: plan those of each")
	}
	if o.MostReads <= 0 || o.MostReads > MostReads {
		o.MostReads = MostReads
	}
	known := make([]facts, len(p.Routines))
	parallel.Each(len(known), func(i int) { known[i] = factsOf(p.Routines[i]) })
	all := make([]Site, len(p.Sites))
	for i := range p.Sites {
		s := &p.Sites[i]
		all[i] = Site{Addr: s.Addr, Routine: s.Routine, Block: s.Block, Insn: s.Insn,
			Condition: s.Condition, Stepped: s.Stepped}
	}
	if o.Extra {
		called := calledByTraced(p)
		found := inPieces(len(p.Routines), func(m *maker, i int) {
			if r := p.Routines[i]; r.Traced() {
				m.extras(r, called[i])
			}
		}, p, known, &o)
		for _, m := range found {
			all = append(all, m.extra...)
		}
		for _, s := range all[len(p.Sites):] {
			known[s.Routine].add(s)
		}
	}
	list := continuations(p)
	inPieces(len(list), func(m *maker, i int) { m.examine(&list[i]) }, p, known, &o)
	f := finder{plan: p, facts: known}
	f.find(list)
	behind := inPieces(len(list), func(m *maker, i int) { m.behind(list[i].from) }, p, known, &o)
	spots := make([]spot, len(all))
	for i := range all {
		spots[i] = spot{place{int32(all[i].Routine), int32(all[i].Block)}, all[i].Insn}
	}
	resumed := resumptions(p)
	inPieces(len(resumed), func(m *maker, i int) { m.examineBefore(&resumed[i]) }, p, known, &o)
	from := beforeHits(resumed, len(p.Routines))
	few := o
	few.MostReads = min(o.MostReads, mostBehind)
	before := inPieces(len(all), func(m *maker, i int) { m.before(spots[i], from[spots[i]]) },
		p, known, &few)
	sites := inPieces(len(all), func(m *maker, i int) { m.site(&all[i], i, figures) }, p, known, &o)

	a := assembler{plan: &Plan{Base: p, Extra: all[len(p.Sites):], After: map[uint64]uint32{},
		Steps: []Step{{Op: End}, {Op: End}}}, same: map[string]uint32{}}
	var counted Figures
	for _, m := range sites {
		counted = append(counted, m.figures...)
		for i := range m.made {
			x, y := &m.made[i][0], &m.made[i][1]
			a.plan.Looks = append(a.plan.Looks, Look{First: [2]uint32{a.add(x), a.add(y)},
				Leaves: [2]bool{x.leaves, y.leaves}})
		}
	}
	first := a.plan.Looks
	for _, m := range before {
		for i := range m.made {
			first[0].Behind = a.add(&m.made[i][0])
			first = first[1:]
		}
	}
	for _, m := range behind {
		for i := range m.made {
			a.plan.After[list[0].address] = max(a.add(&m.made[i][0]), nothingBehind)
			list = list[1:]
		}
	}
	return a.plan, counted, nil
}

// nothingBehind is the step of a program that is known to read nothing.
const nothingBehind = 1

// inPieces has makers take numbers up to n on all CPUs, each some in their order.
func inPieces(n int, turn func(m *maker, i int), p *plan.Plan, known []facts, o *Options,
) (list []*maker) {
	list = make([]*maker, (n+atOnce-1)/atOnce)
	parallel.Each(len(list), func(k int) {
		m := &maker{o: o, follow: follower{plan: p, facts: known},
			earlier: follower{plan: p, facts: known}}
		m.emit.ns = &m.follow.ns
		for i := k * atOnce; i < min((k+1)*atOnce, n); i++ {
			turn(m, i)
		}
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
	made    [][2]program
	extra   []Site
	figures Figures // if they are asked for
}

// A program is the steps that are made for one outcome of a site. Indices in cases are from its
// first step on.
type program struct {
	steps  []Step
	cases  []uint32
	leaves bool
}

// site makes the programs of a site, the look of which has that number.
func (m *maker) site(s *Site, look int, figures bool) {
	var list [2]program
	outcomes := 2
	if s.Condition == plan.NoCondition {
		outcomes = 1
	}
	for outcome := range outcomes {
		w := m.follow.from(s, outcome)
		g := m.program(w, &list[outcome])
		if figures {
			x := m.figure(w, g, m.hits(s, look)/float64(outcomes))
			x.Look, x.Outcome = look, outcome
			m.figures = append(m.figures, x)
		}
	}
	m.made = append(m.made, list)
}

// behind makes the program for the code behind a call.
func (m *maker) behind(at place) {
	var list [2]program
	m.emit.alone = true
	m.program(m.follow.behind(at), &list[0])
	m.made = append(m.made, list)
}

func (m *maker) program(w *way, p *program) *grouper {
	g := &grouper{ns: m.emit.ns, o: m.o}
	g.group(w, true)
	p.leaves = m.emit.program(w)
	p.steps, p.cases = slices.Clone(m.emit.steps), slices.Clone(m.emit.cases)
	return g
}

// examine finds out what programs behind a call do.
func (m *maker) examine(c *continuation) {
	w := m.follow.behind(c.from)
	c.reads, c.returns = w.hasReads(), w.mayReturn()
	m.program(w, &program{})
	for _, s := range m.emit.steps {
		if s.Op == End || s.Op == Leave || s.Op == Pick {
			continue
		}
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

// An assembler adds programs to a plan.
type assembler struct {
	plan *Plan
	same map[string]uint32 // programs without cases, by their steps
	key  []byte
}

// add adds a program, if none is the same, and returns where it begins.
func (a *assembler) add(m *program) (first uint32) {
	p := a.plan
	if len(m.steps) == 0 {
		return 0
	}
	a.key = a.key[:0]
	for _, s := range m.steps {
		a.key = append(a.key, byte(s.Op), s.Dst, s.A, s.B, s.Scale, s.Size, s.Sign, s.Condition)
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(s.Imm))
		a.key = binary.LittleEndian.AppendUint32(a.key, s.Jump)
	}
	if first, ok := a.same[string(a.key)]; ok && len(m.cases) == 0 {
		return first
	}
	first = uint32(len(p.Steps))
	p.Steps = append(p.Steps, m.steps...)
	if len(m.cases) == 0 {
		a.same[string(a.key)] = first
		return first
	}
	p.place(first, m.cases)
	return first
}

// place gives the Switch steps of a program that has been added their cases, which have its steps
// from the first on.
func (p *Plan) place(first uint32, cases []uint32) {
	for i := range p.Steps[first:] {
		if s := &p.Steps[int(first)+i]; s.Op == Switch {
			s.Jump += uint32(len(p.Cases))
		}
	}
	for at := 0; at < len(cases); {
		n := int(cases[at])
		p.Cases = append(p.Cases, uint32(n))
		for _, step := range cases[at+1:][:n] {
			p.Cases = append(p.Cases, first+step)
		}
		at += 1 + n
	}
}

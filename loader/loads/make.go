package loads

import (
	"encoding/binary"
	"errors"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/plan"
)

var errExtra = errors.New("append a plan of loads: one of them has probes for values alone")

// Options say what a plan may cost.
type Options struct {
	// MostReads is how many reads a hit makes at most; 0: the greatest number there is, MostReads.
	MostReads int
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
	known := make([]facts, len(p.Routines))
	parallel.Each(len(known), func(i int) { known[i] = factsOf(p.Routines[i]) })
	pieces := (len(p.Sites) + sitesAtOnce - 1) / sitesAtOnce
	made := make([]*maker, pieces)
	parallel.Each(pieces, func(i int) {
		m := &maker{o: o, follow: follower{plan: p, facts: known}}
		m.emit.ns = &m.follow.ns
		for at := i * sitesAtOnce; at < min((i+1)*sitesAtOnce, len(p.Sites)); at++ {
			m.site(&p.Sites[at])
		}
		made[i] = m
	})
	l := &Plan{Base: p, Steps: make([]Step, 1), After: map[uint64]uint32{}}
	programs := assembler{plan: l, same: map[string]uint32{}}
	for _, m := range made {
		for i := range m.figures {
			m.figures[i].Look += len(l.Looks)
		}
		l.figures = append(l.figures, m.figures...)
		for i := range m.looks {
			a, b := &m.looks[i][0], &m.looks[i][1]
			l.Looks = append(l.Looks, Look{First: [2]uint32{programs.add(a), programs.add(b)},
				Leaves: [2]bool{a.leaves, b.leaves}})
		}
	}
	return l, nil
}

// sitesAtOnce is how many sites one CPU takes at a time.
const sitesAtOnce = 256

// A maker makes the programs of some sites.
type maker struct {
	o       Options
	follow  follower
	emit    emitter
	looks   [][2]program
	figures Figures // with looks from its first site on
}

// A program is the steps that are made for one outcome of a site. Indices in cases are from its
// first step on.
type program struct {
	steps  []Step
	cases  []uint32
	leaves bool
}

func (m *maker) site(s *plan.Site) {
	var list [2]program
	outcomes := 2
	if s.Condition == plan.NoCondition {
		outcomes = 1
	}
	for outcome := range outcomes {
		w := m.follow.from(s, outcome)
		g := grouper{ns: m.emit.ns, o: &m.o}
		g.group(w)
		p := &list[outcome]
		p.leaves = m.emit.program(w)
		p.steps, p.cases = slices.Clone(m.emit.steps), slices.Clone(m.emit.cases)
		x := m.figure(w, &g, s.Expected/float64(outcomes))
		x.Look, x.Outcome = len(m.looks), outcome
		m.figures = append(m.figures, x)
	}
	m.looks = append(m.looks, list)
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

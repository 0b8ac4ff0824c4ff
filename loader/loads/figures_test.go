package loads

import "wpptrace/loader/plan"

// Figures say what the programs of a plan's sites come to. Means are over the hits that the plan
// expects; of branches each way is taken as often.
type Figures struct {
	Reads, Steps float64
	MostReads    int // of any way of a program
	Read         int // loads that programs read
	NotRead      int // others that would have to be
}

// FiguresOf returns the figures of the plan that Make makes.
func FiguresOf(p *plan.Plan, o Options) (f Figures) {
	o.MostReads = MostReads
	known, all, _, _ := prepare(p, &o)
	hits := 0.0
	parts := make([]Figures, len(all))
	weights := make([]float64, len(all))
	inPieces(len(all), func(m *maker, i int) {
		s, x := &all[i], &parts[i]
		weights[i] = p.Routines[s.Routine].Runs(s.Block)
		if i < len(p.Sites) {
			weights[i] = p.Sites[i].Expected
		}
		outcomes := 2
		if s.Condition == plan.NoCondition {
			outcomes = 1
		}
		for outcome := range outcomes {
			w := m.follow.from(s, outcome)
			m.steps(w)
			reads, steps, most := mean(m.emit.steps, m.emit.cases)
			x.Reads += reads / float64(outcomes)
			x.Steps += steps / float64(outcomes)
			x.MostReads = max(x.MostReads, most)
			w.count(x, map[*group]bool{})
		}
	}, p, known, &o)
	for i := range parts {
		x := &parts[i]
		hits += weights[i]
		f.Reads += x.Reads * weights[i]
		f.Steps += x.Steps * weights[i]
		f.MostReads = max(f.MostReads, x.MostReads)
		f.Read += x.Read
		f.NotRead += x.NotRead
	}
	f.Reads, f.Steps = f.Reads/hits, f.Steps/hits
	return f
}

// mean returns how many reads and steps a program makes in the mean, and how many reads at most.
// Its steps lead forwards.
func mean(steps []Step, cases []uint32) (reads, made float64, most int) {
	type figure struct {
		reads, made float64
		most        int
	}
	from := make([]figure, len(steps)+1)
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		var next []int
		switch s.Op {
		case End, Return:
		case Branch:
			next = []int{i + 1, i + 1 + int(s.Jump)}
			if s.A == NoCell && s.B == NoCell && s.Imm == 0 {
				next = next[1:]
			}
		case Switch:
			next = []int{i + 1}
			for _, to := range cases[s.Jump+1:][:cases[s.Jump]] {
				next = append(next, int(to))
			}
		default:
			next = []int{i + 1 + int(s.Jump)}
		}
		x := figure{made: 1}
		for _, n := range next {
			x.reads += from[n].reads / float64(len(next))
			x.made += from[n].made / float64(len(next))
			x.most = max(x.most, from[n].most)
		}
		if s.Op == Fetch {
			x.reads++
			x.most++
		}
		from[i] = x
	}
	return from[0].reads, from[0].made, from[0].most
}

// count counts the loads of a way and of all behind it. known are the groups that are read.
func (w *way) count(x *Figures, known map[*group]bool) {
	for _, g := range w.groups {
		known[g] = !g.out
	}
	for i := range w.loads {
		l := &w.loads[i]
		isRead := false
		for g, is := range known {
			isRead = isRead || is && g.holds(l.at, l.size)
		}
		switch {
		case l.past && !isRead: // another hit may come there
		case l.need == notComputable, l.need == toRead && !isRead:
			x.NotRead++
		case l.need == toRead, l.need == returnAddress:
			x.Read++
		}
	}
	for _, n := range w.next {
		n.count(x, known)
	}
}

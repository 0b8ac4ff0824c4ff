package figures

import (
	"cmp"
	"slices"

	"wpptrace/internal/parallel"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// Figures sum up a plan.
type Figures struct {
	Routines  int
	Traced    int
	Implied   int // traced without a probe: their callers imply what they do
	ProbeFree int // traced, with probes, that can run without a hit: their callers imply it then

	AcyclicPaths float64 // of the routines that are traced
	LoopsCounted int     // that run without a hit: registers count their rounds

	Probes      int
	SingleStep  int // probes on instructions that are single-stepped
	Conditional int // probes on conditional jumps

	ExpectedHits, ExpectedPaths float64 // by the weights of the plan
	LeftOut                     []LeftOut

	ProbesOf []int     // by routine
	PathsOf  []float64 // by routine: acyclic paths; 0 if they cannot be numbered
}

// A LeftOut is a reason why routines are not traced.
type LeftOut struct {
	Reason   string
	Routines int
	Example  string // the name of one
}

// Of sums up a plan. Cost: the paths of all routines are numbered, on all CPUs.
func Of(p *plan.Plan) *Figures {
	f := &Figures{Routines: len(p.Routines), Probes: len(p.Sites),
		ProbesOf: make([]int, len(p.Routines))}
	f.numberPaths(p.Routines)
	for i := range p.Sites {
		s := &p.Sites[i]
		f.ProbesOf[s.Routine]++
		if s.Stepped {
			f.SingleStep++
		}
		if s.Condition < plan.NoCondition {
			f.Conditional++
		}
	}
	for _, r := range p.Routines {
		f.count(r)
	}
	slices.SortStableFunc(f.LeftOut,
		func(a, b LeftOut) int { return cmp.Compare(b.Routines, a.Routines) })
	return f
}

func (f *Figures) count(r *plan.Routine) {
	if !r.Traced() {
		i := slices.IndexFunc(f.LeftOut, func(l LeftOut) bool { return l.Reason == r.Cause })
		if i < 0 {
			i = len(f.LeftOut)
			f.LeftOut = append(f.LeftOut, LeftOut{Reason: r.Cause, Example: r.Name})
		}
		f.LeftOut[i].Routines++
		return
	}
	f.Traced++
	f.AcyclicPaths += f.PathsOf[r.ID]
	f.ExpectedHits += expectedHits(r)
	f.LoopsCounted += r.LoopsCounted()
	switch {
	case f.ProbesOf[r.ID] == 0:
		f.Implied++
	case r.RunsProbeFree():
		f.ProbeFree++
	}
}

// numberPaths finds how many acyclic paths each traced routine has, and how many are expected to
// run of all.
func (f *Figures) numberPaths(routines []*plan.Routine) {
	expected := make([]float64, len(routines))
	f.PathsOf = make([]float64, len(routines))
	parallel.Each(len(routines), func(i int) {
		if !routines[i].Traced() {
			return
		}
		if n, err := paths.Number(routines[i].Routine); err == nil {
			f.PathsOf[i], expected[i] = float64(n.Total), expectedPaths(routines[i], n)
		}
	})
	for _, count := range expected {
		f.ExpectedPaths += count
	}
}

// expectedHits is how many hits the probes of a traced routine are expected to make.
func expectedHits(r *plan.Routine) (hits float64) {
	for b := range r.Blocks {
		if r.Site(b) != nil {
			hits += r.Runs(b)
		}
	}
	return hits
}

// expectedPaths is how many paths a traced routine is expected to run.
func expectedPaths(r *plan.Routine, n *paths.Numbering) (count float64) {
	for b := range r.Blocks {
		count += r.Runs(b) * endingShare(r, n, b)
	}
	return count
}

// endingShare is the share of a block's runs that are the last of their path: its ways on are
// weighed by how often they lead to.
func endingShare(r *plan.Routine, n *paths.Numbering, b int) float64 {
	var ending, all float64
	for _, next := range r.Blocks[b].Succ {
		if next < 0 { // it leaves by a conditional jump
			continue
		}
		all += r.Runs(next)
		if _, ends, _, _ := n.Step(b, next); ends {
			ending += r.Runs(next)
		}
	}
	if all == 0 {
		return 1
	}
	return ending / all
}

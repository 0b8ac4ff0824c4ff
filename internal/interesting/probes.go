package interesting

import (
	"sort"

	"wpptrace/internal/parallel"
	"wpptrace/loader/counting"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/x86"
)

// A Counting is how to count the paths of a Set in the kernel, and what hits that would have taken
// in the recording that they come from.
type Counting struct {
	Routines []CountedRoutine // those of the Set, in its order
	Sites    int
	Stepped  int // of them, single-stepped
	Unclear  int // paths that no probes tell from others
	// Hits of the recording: by the plan of the tracer, by the counting, and of these the
	// single-stepped ones
	Traced, Counted, SteppedHits float64
	// paths of the recording, and of these the interesting ones
	Ran, Interesting float64
}

// A CountedRoutine is how to count paths of a routine; Answer is nil where that cannot be.
type CountedRoutine struct {
	*RoutineSet
	Answer *counting.Answer
	Why    error // if Answer is nil
}

// Count chooses probes that count the paths of the set, and of each routine all its others
// together, if others is set. Probes are chosen by how often blocks ran in the recording. Cost: a
// proof for each probe that is tried, some ms a routine.
func (s *Set) Count(others bool) *Counting {
	c := &Counting{Routines: make([]CountedRoutine, len(s.Routines)), Interesting: s.ran}
	parallel.Each(len(s.Routines), func(i int) {
		r := &s.Routines[i]
		answer, err := counting.Choose(question(r, s.recordedOf(r.Routine), others))
		c.Routines[i] = CountedRoutine{r, answer, err}
	})
	c.sum(s)
	return c
}

// recordedOf are the recorded paths of a routine.
func (s *Set) recordedOf(r *plan.Routine) []recorded {
	from := sort.Search(len(s.all), func(i int) bool { return s.all[i].routine.ID >= r.ID })
	to := from
	for to < len(s.all) && s.all[to].routine.ID == r.ID {
		to++
	}
	return s.all[from:to]
}

func question(r *RoutineSet, recorded []recorded, others bool) counting.Question {
	runs := map[int]float64{}
	for _, x := range recorded {
		for _, b := range x.blocks {
			runs[b] += float64(x.ran)
		}
	}
	const never = 1e-6
	return counting.Question{
		Routine: r.Routine.Routine, Numbering: r.Numbering, Paths: r.Paths, Rest: others,
		Site: func(b int) (counting.Site, bool) {
			insn, stepped, ok := planner.Point(r.Routine.Routine, b)
			if !ok {
				return counting.Site{}, false
			}
			return counting.Site{Stepped: stepped,
				Jump: r.Routine.Blocks[b].Insns[insn].Kind == x86.Jcc}, true
		},
		Cost: func(b int, s counting.Site) float64 {
			cost := runs[b] + never*(1+r.Routine.Runs(b))
			if s.Stepped {
				cost *= planner.SteppedCost
			}
			return cost
		},
		Twice: r.Routine.ReturnsTwice,
	}
}

// sum adds up hits.
func (c *Counting) sum(s *Set) {
	type place struct{ routine, block int }
	isStepped := map[place]bool{} // by site
	for i := range c.Routines {
		r := &c.Routines[i]
		if r.Answer == nil {
			c.Unclear += len(r.Paths)
			continue
		}
		c.Unclear += len(r.Answer.Unclear)
		for _, b := range r.Answer.Machine.Sites {
			_, stepped, _ := planner.Point(r.Routine.Routine, b)
			isStepped[place{r.Routine.ID, b}] = stepped
			c.Sites++
			if stepped {
				c.Stepped++
			}
		}
	}
	for _, x := range s.all {
		ran := float64(x.ran)
		c.Ran += ran
		for _, b := range x.blocks {
			if x.routine.Site(b) != nil {
				c.Traced += ran
			}
			if stepped, ok := isStepped[place{x.routine.ID, b}]; ok {
				c.Counted += ran
				if stepped {
					c.SteppedHits += ran
				}
			}
		}
	}
}

// report says it in numbers.
func (c *Counting) report(others string) *Probes {
	p := &Probes{Others: others, Probes: c.Sites, SingleStepped: c.Stepped, NotTold: c.Unclear}
	of := func(n float64) *float64 {
		if c.Ran == 0 {
			return nil
		}
		n /= c.Ran
		return &n
	}
	p.HitsPerPath, p.SteppedHits = of(c.Counted), of(c.SteppedHits)
	p.PlanHits, p.Share = of(c.Traced), of(c.Interesting)
	return p
}

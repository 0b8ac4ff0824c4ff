package loads

import (
	"cmp"
	"slices"

	"wpptrace/loader/plan"
)

// A ProgramFigure says what the program of one outcome of a look comes to.
type ProgramFigure struct {
	Look, Outcome int
	Hits          float64 // that the base plan expects
	Ways          int     // up to the next probe
	Mean          Cost    // of its ways
	MostReads     int     // of any of its ways
	Loads         LoadFigures
	Cut           bool // it has more ways, or longer ones, than were followed
}

// LoadFigures count the loads of ways by what becomes of them.
type LoadFigures struct {
	Read          int
	Forwarded     int // stored on the same way
	Private       int // in a frame of which nobody else knows the address
	ReadOnly      int // of data of the image's file
	NotComputable int // their address depends on what is not known at the hit
	Beyond        int // the hit makes as many reads as it may without them
}

// Figures say what a plan of loads comes to, program by program in the order of looks.
type Figures []ProgramFigure

// FiguresOf returns the figures of the plan that Make makes. It takes as long.
func FiguresOf(p *plan.Plan, o Options) (Figures, error) {
	_, list, err := makePlan(p, o, true)
	return list, err
}

// hits is how many hits the base plan expects of a site, the look of which has that number.
func (m *maker) hits(s *Site, look int) float64 {
	if base := m.follow.plan.Sites; look < len(base) {
		return base[look].Expected
	}
	return m.follow.plan.Routines[s.Routine].Runs(s.Block)
}

func (m *maker) figure(w *way, g *grouper, hits float64) (x ProgramFigure) {
	x = ProgramFigure{Hits: hits, Mean: m.emit.cost, MostReads: g.most}
	w.count(&x)
	x.Loads.Read -= g.beyond
	x.Loads.Beyond = g.beyond
	return x
}

func (w *way) count(x *ProgramFigure) {
	for i := range w.loads {
		switch w.loads[i].need {
		case toRead, returnAddress:
			x.Loads.Read++
		case forwarded:
			x.Loads.Forwarded++
		case private:
			x.Loads.Private++
		case readOnly:
			x.Loads.ReadOnly++
		case notComputable:
			x.Loads.NotComputable++
		}
	}
	x.Cut = x.Cut || w.cut
	if len(w.next) == 0 {
		x.Ways++
	}
	for _, n := range w.next {
		n.count(x)
	}
}

// Mean is the mean of a figure over all hits; 0 if none is expected.
func (list Figures) Mean(of func(x *ProgramFigure) float64) float64 {
	sum, hits := 0.0, 0.0
	for i := range list {
		sum += of(&list[i]) * list[i].Hits
		hits += list[i].Hits
	}
	if hits == 0 {
		return 0
	}
	return sum / hits
}

// Share returns the least number that a figure exceeds at no more than the other hits: the median
// for a share of 0.5.
func (list Figures) Share(share float64, of func(x *ProgramFigure) float64) float64 {
	type weighed struct{ figure, hits float64 }
	sorted := make([]weighed, len(list))
	hits := 0.0
	for i := range list {
		sorted[i] = weighed{of(&list[i]), list[i].Hits}
		hits += list[i].Hits
	}
	slices.SortFunc(sorted, func(a, b weighed) int { return cmp.Compare(a.figure, b.figure) })
	sum := 0.0
	for _, x := range sorted {
		if sum += x.hits; sum >= share*hits {
			return x.figure
		}
	}
	return 0
}

package profile

import (
	"cmp"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/saturating"
	"wpptrace/query"
)

// A RoutineFigures is what is known of the executions of a routine, without those that it calls.
type RoutineFigures struct {
	Routine int          // index in Snapshot.Routines; NoRoutine: samples are in it alone
	Time    *RoutineTime // NoRoutine: what is known of it; else nil
	Calls   uint64       // activations whose beginning was seen
	Paths   uint64       // executions of paths
	Cost    uint64       // of these, in the report's metric
	// the path that cost most, of these the one that ran most often; 0 where Paths is 0
	Hottest      uint32
	HottestCost  uint64
	HottestCount uint64
	Samples      uint64 // of the CPU time, that are in it
	// calls and paths in the whole run, of which windows were recorded; nil: that is not known, or
	// all of it was recorded, or threads were asked for
	CallsInAll, PathsInAll *query.Total
}

// A FlatReport is a flat profile: what ran, by routine.
type FlatReport struct {
	Metric  query.Metric
	Threads int
	Paths   uint64 // executions of paths in these threads
	Total   uint64 // the cost of them
	// the cost of all that ran in the whole run, of which windows were recorded; nil: that is not
	// known, or all of it was recorded, or threads were asked for
	InAll   *query.Total
	Samples uint64 // of the CPU time, in all code; 0: there are none, or threads were asked for
	// those that ran or have samples, traced or not: by falling samples, where there are any, then
	// by falling cost
	Routines []RoutineFigures
}

// Time is a routine's share of the CPU time.
func (r *FlatReport) Time(x *RoutineFigures) samples.Share {
	return samples.Share{Samples: x.Samples, Of: r.Samples}
}

// Flat sums up by routine what ran in the threads with these ids, or in all. Costs are
// instructions, or executions where the snapshot does not say what paths consist of. They are
// counted: of a recording in windows they are those of the windows, beside which stands what is
// known of the whole run. Samples are
// of all threads and all the time; those that are damaged are left out. It takes time and memory
// linear in the grammars and the alphabet. It fails where the snapshot has no such thread.
func Flat(s *wpp.Snapshot, tids ...int) (r *FlatReport, err error) {
	defer wpp.Recover(&err)
	counts, err := query.NewFrequencies(s, tids...)
	if err != nil {
		return nil, err
	}
	r = &FlatReport{Metric: query.NaturalMetric(s), Threads: counts.Threads}
	of := map[int]*RoutineFigures{}
	for i := range s.Symbols {
		p, sym := &s.Symbols[i], uint32(i)
		n := counts.Symbol(sym)
		if p.IsMark || n == 0 {
			continue
		}
		cost := saturating.Mul(n, r.Metric.CostOf(s, sym))
		figures(of, p.Routine).add(sym, p.Start, n, cost)
	}
	if time, err := CPUTime(s); err == nil && time != nil && len(tids) == 0 {
		r.Samples = time.Samples
		for i := range time.Routines {
			t := &time.Routines[i]
			if t.Routine != NoRoutine {
				figures(of, t.Routine).Samples = t.Share.Samples
				continue
			}
			r.Routines = append(r.Routines,
				RoutineFigures{Routine: NoRoutine, Time: t, Samples: t.Share.Samples})
		}
	}
	if len(tids) == 0 {
		whole, err := query.NewWhole(s)
		if err != nil {
			return nil, err
		}
		r.InAll = whole.Cost()
		for _, x := range of {
			x.CallsInAll, x.PathsInAll = whole.Calls(s, x.Routine), whole.Paths(x.Routine)
		}
	}
	for _, x := range of {
		r.Paths = saturating.Add(r.Paths, x.Paths)
		r.Total = saturating.Add(r.Total, x.Cost)
		r.Routines = append(r.Routines, *x)
	}
	slices.SortStableFunc(r.Routines, func(a, b RoutineFigures) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(b.Cost, a.Cost),
			cmp.Compare(b.Paths, a.Paths), cmp.Compare(a.Routine, b.Routine))
	})
	return r, nil
}

func figures(of map[int]*RoutineFigures, routine int) *RoutineFigures {
	if of[routine] == nil {
		of[routine] = &RoutineFigures{Routine: routine}
	}
	return of[routine]
}

// add adds n executions of a path, and what they cost together.
func (x *RoutineFigures) add(sym uint32, start ops.Start, n, cost uint64) {
	if start == ops.StartEntry {
		x.Calls = saturating.Add(x.Calls, n)
	}
	if x.Paths == 0 || cost > x.HottestCost || cost == x.HottestCost && n > x.HottestCount {
		x.Hottest, x.HottestCost, x.HottestCount = sym, cost, n
	}
	x.Paths = saturating.Add(x.Paths, n)
	x.Cost = saturating.Add(x.Cost, cost)
}

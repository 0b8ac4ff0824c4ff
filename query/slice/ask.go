package slice

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/values"
)

// A Query asks for the slice of one execution of an instruction.
type Query struct {
	At       string // as values.Places takes it
	Instance int    // of the executions of any of these instructions, from 1 on; 0: the last one
	TID      int    // of the thread; 0: of the first one that has executed it
	Forward  bool   // what depends on it; else what it depends on
	By       Kinds  // of dependences
}

// An Answer is a slice, by instruction.
type Answer struct {
	Query      Query
	At         Place
	TID        int
	Instance   int // that was taken
	Executions int // of the instructions, in the thread
	Executed   int // instructions that the thread executed
	In         int // of these, in the slice
	// the instructions of the slice: backward that whose last execution comes last is the first,
	// forward that whose first one comes first
	Parts          []Part
	Unsure, Opaque int // see Graph
}

// A Part is an instruction of a slice.
type Part struct {
	Place
	Times int           // that it is in the slice
	Away  int           // how many dependences between source lines lead to it, at least
	Last  *wet.Executed // the nearest to the one that was asked for
}

// Ask replays a thread twice, which takes some 300 ns an executed instruction in all, and 30 bytes.
// It fails with values.ErrNone where there are no values.
func Ask(s *wpp.Snapshot, q Query) (a *Answer, err error) {
	defer wpp.Recover(&err)
	if !values.Has(s) {
		return nil, values.ErrNone
	}
	places, err := values.Places(s, q.At)
	if err != nil {
		return nil, err
	}
	var at []uint64
	for _, p := range places {
		at = append(at, p.Addr)
	}
	most := 0
	for thread := range s.Threads {
		if q.TID != 0 && s.Threads[thread].TID != q.TID {
			continue
		}
		g, err := Of(s, thread)
		if err != nil {
			return nil, err
		}
		all := slices.Collect(g.Executions(at...))
		most = max(most, len(all))
		if len(all) == 0 || q.Instance > len(all) {
			continue
		}
		n := cmp.Or(q.Instance, len(all))
		a = &Answer{Query: q, At: g.Place(all[n-1]), TID: s.Threads[thread].TID, Instance: n,
			Executions: len(all), Executed: g.Len(), Unsure: g.Unsure, Opaque: g.Opaque}
		return a, a.fill(s, thread, g, all[n-1])
	}
	return nil, fmt.Errorf("slice: no thread executed %s %d times: at most %d: wpptrace values "+
		"--at prints what was executed", names.Printable(q.At), max(q.Instance, 1), most)
}

// fill finds the slice and, by a second replay, the values in it.
func (a *Answer) fill(s *wpp.Snapshot, thread int, g *Graph, at int) error {
	var in []int
	if a.Query.Forward {
		in = g.Forward(at, a.Query.By)
	} else {
		in = g.Backward(at, a.Query.By)
		slices.Reverse(in)
	}
	a.In = len(in)
	away := g.away(s, in, a.Query.By, a.Query.Forward)
	of := map[uint32]int{}   // index in Parts
	nearest := map[int]int{} // instance -> index in Parts
	for nth, i := range in {
		n, ok := of[g.insns[i]]
		if !ok {
			n = len(a.Parts)
			of[g.insns[i]], nearest[i] = n, n
			a.Parts = append(a.Parts, Part{Place: g.Place(i), Away: int(away[nth])})
		}
		a.Parts[n].Away = min(a.Parts[n].Away, int(away[nth]))
		a.Parts[n].Times++
	}
	i := 0
	for e, err := range values.Instructions(s, thread) {
		if err != nil {
			return err
		}
		if n, ok := nearest[i]; ok {
			x := *e
			x.Written, x.Accesses = slices.Clone(e.Written), nil
			for j := range e.Accesses {
				x.Accesses = append(x.Accesses, e.Accesses[j].Clone())
			}
			a.Parts[n].Last = &x
		}
		i++
	}
	return nil
}

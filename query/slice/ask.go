package slice

import (
	"fmt"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/values"
)

// A Query asks for the slice of one execution of an instruction, or of a source line.
type Query struct {
	At       string // as values.Find takes it
	Instance uint64 // see values.Question; 0: the last one
	TID      int    // of the thread; 0: of all
	Forward  bool   // what depends on it; else what it depends on
	By       Kinds  // of dependences
}

// An Answer is a slice, by instruction.
type Answer struct {
	Query      Query
	Where      *values.Where
	Instance   uint64 // that was taken
	Executions uint64 // in the threads asked for
	// what the slice begins at, in the order of execution: of a source line the instructions that
	// computed a value, if one did
	At       []Place
	TID      int
	Executed int // instructions that the thread executed
	In       int // of these, in the slice
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
	where, err := values.Find(s, q.At)
	if err != nil {
		return nil, err
	}
	question := &values.Question{Where: where, Instance: q.Instance}
	if q.TID != 0 {
		question.Threads = []int{q.TID}
	}
	x, err := values.FindExecution(s, question)
	if err != nil {
		return nil, err
	}
	st := starts{execution: x, isLine: where.Kind == values.Line}
	g, err := graphOf(s, x.Thread, st.executed)
	if err != nil {
		return nil, err
	}
	of := st.list()
	if len(of) == 0 {
		return nil, fmt.Errorf("slice: no values of %s were recorded there",
			names.Printable(q.At))
	}
	a = &Answer{Query: q, Where: where, Instance: x.Instance, Executions: x.Of,
		TID: s.Threads[x.Thread].TID, Executed: g.Len(), Unsure: g.Unsure, Opaque: g.Opaque}
	for _, i := range of {
		a.At = append(a.At, g.Place(i))
	}
	return a, a.fill(s, x.Thread, g, of)
}

// starts finds the instances of an execution.
type starts struct {
	execution *values.Execution
	isLine    bool
	next      int   // in execution.Ran
	all       []int // instances
	computed  []int // those of them that computed a value
}

func (x *starts) executed(i int, e *wet.Executed) {
	ran := x.execution.Ran
	at := wet.Place{Symbol: e.Symbol, Step: e.Step, Insn: e.Insn}
	for x.next < len(ran) && ran[x.next].At.Compare(at) < 0 {
		x.next++
	}
	if x.next == len(ran) || ran[x.next].At != at {
		return
	}
	x.all = append(x.all, i)
	if computes(e) {
		x.computed = append(x.computed, i)
	}
}

// list is what a slice begins at.
func (x *starts) list() []int {
	if x.isLine && len(x.computed) > 0 {
		return x.computed
	}
	return x.all
}

// computes reports whether an instruction computes a value: those that lead elsewhere do not.
func computes(e *wet.Executed) bool {
	switch e.Code.Op {
	case machine.Call, machine.Return, machine.Jump, machine.JumpIf, machine.JumpCX, machine.Loop,
		machine.LoopEqual, machine.LoopUneven:
		return false
	case machine.Opaque:
		return true
	}
	return len(e.Written) > 0 || len(e.Accesses) > 0 || e.FlagsWritten != 0 ||
		e.Code.WrittenVectors() != 0
}

// fill finds the slice of some instances and, by a second replay, the values in it.
func (a *Answer) fill(s *wpp.Snapshot, thread int, g *Graph, at []int) error {
	var in []int
	if a.Query.Forward {
		in = g.Forward(a.Query.By, at...)
	} else {
		in = g.Backward(a.Query.By, at...)
		slices.Reverse(in)
	}
	a.In = len(in)
	away := g.away(s, at, in, a.Query.By, a.Query.Forward)
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

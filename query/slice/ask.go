package slice

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/internal/parallel"
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
	Most     uint64 // instructions of the thread that are looked at; 0: DefaultMost
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
	Faulted  bool // the instruction that it begins at did not come to its end
	TID      int
	Executed int // instructions that the thread executed, and that were looked at
	// positions in the thread's stream before, and behind, which nothing was looked at, for want of
	// room; nil: there are none
	From, To *uint64
	In       int // of these, in the slice
	// the instructions of the slice: backward that whose last execution comes last is the first,
	// forward that whose first one comes first
	Parts []Part
	// see Graph
	Unsure, Opaque, Doubtful int
	Others                   int // reads in the slice of what others wrote: see Foreign
}

// A Part is an instruction of a slice.
type Part struct {
	Place
	Times int           // that it is in the slice
	Away  int           // how many dependences between source lines lead to it, at least
	Last  *wet.Executed // the nearest to the one that was asked for
	// how often it read what others wrote, and the nearest time; nil: never
	Others  int
	Foreign *Foreign
}

// Ask replays a thread, and of it once more what has the values that are printed: it takes some 150
// ns and 40 bytes an executed instruction in all. Of a thread that executed more than it is to look
// at, it looks at those before what is asked for, or behind it, in whole segments of values.
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
	looked, err := windowOf(s, &q, x)
	if err != nil {
		return nil, err
	}
	g, err := graphOf(s, x.Thread, looked.segments, st.executed, accessing(s, x.Fault))
	if err != nil {
		return nil, err
	}
	of := st.list()
	if len(of) == 0 {
		return nil, fmt.Errorf("slice: no values of %s were recorded there",
			names.Printable(q.At))
	}
	a = &Answer{Query: q, Where: where, Instance: x.Instance, Executions: x.Of,
		TID: s.Threads[x.Thread].TID, Executed: g.Len(), Unsure: g.Unsure, Opaque: g.Opaque,
		Doubtful: g.Doubtful,
		From:     looked.from, To: looked.to}
	for _, i := range of {
		a.At = append(a.At, g.Place(i))
	}
	if err := a.fill(s, x.Thread, looked.segments, g, of); err != nil || x.Fault == nil {
		return a, err
	}
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Last == nil && p.Place == a.At[0] {
			p.Last = x.Fault
		}
	}
	a.Faulted = true
	return a, nil
}

// accessing is a fault as an instruction that uses no more than where it accesses memory, if that
// is why it faulted.
func accessing(s *wpp.Snapshot, e *wet.Executed) *wet.Executed {
	const bus, segv = 7, 11
	status := s.Figures.WaitStatus
	if e == nil || status == nil || *status&0x7f != bus && *status&0x7f != segv {
		return e
	}
	for _, o := range [...]machine.Operand{e.Code.Dst, e.Code.Src, e.Code.Third} {
		if o.Class == machine.Mem {
			only := *e
			only.Code = &machine.Insn{Op: machine.Lea, Len: e.Code.Len, Size: 8, Src: o,
				Dst: machine.Operand{Class: machine.General, Size: 8}}
			only.FlagsUsed = 0
			return &only
		}
	}
	return e
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
func (a *Answer) fill(s *wpp.Snapshot, thread int, segments []wet.Segment, g *Graph,
	at []int) error {
	var in []int
	if a.Query.Forward {
		in = g.Forward(a.Query.By, at...)
	} else {
		in = g.Backward(a.Query.By, at...)
		slices.Reverse(in)
	}
	a.In = len(in)
	away := g.away(s, at, in, a.Query.By, a.Query.Forward)
	of := make([]int, len(g.places)) // index in Parts, and 1
	var nearest []seen
	for nth, i := range in {
		n := &of[g.insns.at(i)]
		if *n == 0 {
			a.Parts = append(a.Parts, Part{Place: g.Place(i), Away: int(away[nth])})
			*n = len(a.Parts)
			nearest = append(nearest, seen{instance: i, part: *n - 1})
		}
		p := &a.Parts[*n-1]
		p.Away = min(p.Away, int(away[nth]))
		p.Times++
		if wrote, is := g.Others(i); is {
			a.Others++
			if p.Others++; p.Others == 1 {
				p.Foreign = g.foreignAfter(wrote)
				nearest = append(nearest, seen{i, *n - 1, p.Foreign})
			}
		}
	}
	return cmp.Or(a.see(segments, g, nearest), a.findWriters(s, thread))
}

// A seen instance is one whose values a part has, or what it has of a read of what others wrote.
type seen struct {
	instance, part int
	foreign        *Foreign
}

// see finds what instances computed, by a replay of the segments that they are in.
func (a *Answer) see(segments []wet.Segment, g *Graph, list []seen) error {
	slices.SortFunc(list, func(x, y seen) int { return cmp.Compare(x.instance, y.instance) })
	errs := make([]error, len(segments))
	parallel.Each(len(segments), func(i int) {
		defer wpp.Recover(&errs[i])
		in := seer{at: g.firsts[i], parts: a.Parts, list: list}
		in.list = in.list[in.before(in.at):]
		if i+1 < len(segments) {
			in.list = in.list[:in.before(g.firsts[i+1])]
		}
		if len(in.list) == 0 {
			return
		}
		if err := segments[i].Replay(0, math.MaxUint64, &in); !errors.Is(err, errSeen) {
			errs[i] = err
		}
	})
	return errors.Join(errs...)
}

// A seer is told the instances of a segment.
type seer struct {
	at    int
	list  []seen // still to come
	parts []Part
}

var errSeen = errors.New("all is seen")

// before is how many of the list come before an instance.
func (x *seer) before(instance int) int {
	n, _ := slices.BinarySearchFunc(x.list, instance,
		func(s seen, instance int) int { return cmp.Compare(s.instance, instance) })
	return n
}

// Executed is for who replays: see wet.Observer.
func (x *seer) Executed(e *wet.Executed) error {
	x.at++
	if x.list[0].instance != x.at-1 {
		return nil
	}
	last := *e
	last.Written, last.Accesses = slices.Clone(e.Written), nil
	for j := range e.Accesses {
		last.Accesses = append(last.Accesses, e.Accesses[j].Clone())
	}
	for ; len(x.list) > 0 && x.list[0].instance == x.at-1; x.list = x.list[1:] {
		if f := x.list[0].foreign; f != nil {
			f.Read = &last
		} else {
			x.parts[x.list[0].part].Last = &last
		}
	}
	if len(x.list) == 0 {
		return errSeen
	}
	return nil
}

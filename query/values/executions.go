package values

import (
	"fmt"
	"path"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
)

// An Execution is one of a Where.
type Execution struct {
	Thread   int    // index in Snapshot.Threads
	Instance uint64 // its number among those of the threads asked for, from 1
	Of       uint64 // how many these are
	Ran      []Occurrence
	// Fault is the one of Ran that faulted, of End; nil: it came to its end
	Fault *wet.Executed
}

// An Occurrence is an instruction that a thread executed.
type Occurrence struct {
	Instruction
	At wet.Place // as of wet.Executed, but for Block
}

// FindExecution is the execution that is asked for, or the last one where Instance is 0. It
// fails where there is none. It reads the streams of paths twice, some 10 ns a path. End is
// the instruction that faulted, in the first of the threads that ended so; or else the last
// one that the first of the threads executed: it takes a replay of the thread's last segment.
func FindExecution(s *wpp.Snapshot, q *Question) (x *Execution, err error) {
	defer wpp.Recover(&err)
	threads, err := q.threads(s)
	if err != nil {
		return nil, err
	}
	if q.Where.Kind == End {
		return q.last(s, threads)
	}
	c := newCounter(s, q.Where)
	before := make([]uint64, len(threads)) // executions in the threads before each
	for i, thread := range threads {
		before[i] = c.count
		c.thread(thread, func(uint64, []numbered) {})
	}
	if err := q.check(s, c.count); err != nil {
		return nil, err
	}
	x = &Execution{Instance: q.Instance, Of: c.count}
	if x.Instance == 0 {
		x.Instance = c.count
	}
	i := len(threads) - 1
	for before[i] >= x.Instance {
		i--
	}
	x.Thread, c.count = threads[i], before[i]
	c.thread(x.Thread, func(position uint64, ran []numbered) {
		for _, n := range ran {
			if n.number == x.Instance {
				x.Ran = append(x.Ran, Occurrence{q.Where.At[n.at], n.place(position)})
			}
		}
	})
	return x, nil
}

// last is what a thread did last.
func (q *Question) last(s *wpp.Snapshot, threads []int) (x *Execution, err error) {
	e, isFault, thread, err := lastOf(s, threads)
	if err != nil {
		return nil, err
	}
	if err := q.check(s, 1); err != nil {
		return nil, err
	}
	x = &Execution{Thread: thread, Instance: 1, Of: 1, Ran: []Occurrence{{
		Instruction{e.Routine, e.Addr},
		wet.Place{Symbol: e.Symbol, Step: e.Step, Insn: e.Insn}}}}
	if isFault {
		x.Fault = e
	}
	return x, nil
}

// threads are the indices of those that are asked for.
func (q *Question) threads(s *wpp.Snapshot) (list []int, err error) {
	if !Has(s) {
		return nil, ErrNone
	}
	threads, err := query.Threads(s, q.Threads)
	if err != nil {
		return nil, err
	}
	for i := range s.Threads {
		if slices.Contains(threads, &s.Threads[i]) {
			list = append(list, i)
		}
	}
	return list, nil
}

// check fails where the execution is none of those that there are.
func (q *Question) check(s *wpp.Snapshot, executions uint64) error {
	at := names.Printable(q.Where.Text)
	switch {
	case executions == 0 && len(q.Threads) > 0 && len(s.Threads) > 1:
		return fmt.Errorf("find %s: no thread of --tid executed it: others may have", at)
	case executions == 0:
		return fmt.Errorf("find %s: it was not executed", at)
	case q.Instance > executions:
		return fmt.Errorf("find %s: there is no instance %d: it has 1 to %d", at, q.Instance,
			executions)
	}
	return nil
}

// A counter numbers the executions that are asked for as the paths and marks of threads come, one
// thread after the other: see package ops for when activations begin and end.
type counter struct {
	snapshot *wpp.Snapshot
	where    *Where
	count    uint64      // executions so far
	parts    [][]passage // by symbol: what a path has of what is asked for, in its order
	most     uint64      // that one of them has
	file     string      // of a line: its path
	line     int
	stack    []activity // the activations that the thread is in, the innermost last
	resumed  bool       // an activation comes next, from its middle on
	ran      []numbered
}

// A passage is an instruction of a path that is asked for, or else those up to the next one of
// another kind.
type passage struct {
	at         int // index in Where.At; none
	step, insn int // as of wet.Place
	// the inlined call whose line it is, or which calls it from that line; none: it is of another
	call int
}

// A numbered is an instruction that is asked for, and the number of the execution.
type numbered struct {
	passage
	number uint64
}

func (n *numbered) place(position uint64) wet.Place {
	return wet.Place{Symbol: position, Step: n.step, Insn: n.insn}
}

// An activity is an activation of a routine.
type activity struct {
	number uint64 // of the execution that it was amid last
	call   int    // as of the last passage
}

const none = -1

func newCounter(s *wpp.Snapshot, w *Where) *counter {
	c := &counter{snapshot: s, where: w, parts: make([][]passage, len(s.Symbols))}
	if w.Kind == Line && len(w.At) > 0 {
		span := spanAt(s, w.At[0])
		c.file, c.line = path.Clean(s.Files[span.File]), span.Line
	}
	for sym := range s.Symbols {
		p := &s.Symbols[sym]
		isOf := func(x Instruction) bool { return x.Routine == p.Routine }
		if p.IsMark || !slices.ContainsFunc(w.At, isOf) {
			continue
		}
		c.parts[sym] = c.partOf(uint32(sym))
		c.most = max(c.most, uint64(len(c.parts[sym])))
	}
	return c
}

// copy is one that goes on by itself.
func (c *counter) copy() *counter {
	made := *c
	made.stack, made.ran = slices.Clone(c.stack), nil
	return &made
}

// spanAt is where an instruction is in the source.
func spanAt(s *wpp.Snapshot, x Instruction) wpp.Span {
	for i := range s.Routines[x.Routine].Blocks {
		b := &s.Routines[x.Routine].Blocks[i]
		at := b.Addr
		for k, n := range b.Lengths {
			if at == x.Addr {
				return SpanOf(b, k)
			}
			at += uint64(n)
		}
	}
	return wpp.Span{}
}

func (c *counter) partOf(sym uint32) (list []passage) {
	p := &c.snapshot.Symbols[sym]
	if c.where.Kind == Call && p.Start != ops.StartEntry {
		return nil
	}
	for step, n := range p.Blocks {
		b := &c.snapshot.Routines[p.Routine].Blocks[n]
		from, to, addr := 0, len(b.Lengths), b.Addr
		if step == 0 {
			from = p.Skip
		}
		if step == len(p.Blocks)-1 {
			to -= p.Cut
		}
		for i, n := range b.Lengths {
			x := passage{slices.Index(c.where.At, Instruction{p.Routine, addr}), step, i, none}
			addr += uint64(n)
			switch {
			case i < from || i >= to:
			case c.where.Kind == Line:
				list = c.pass(list, x, SpanOf(b, i))
			case x.at != none:
				list = append(list, x)
			}
		}
	}
	return list
}

// pass adds an instruction of a path in which a line is asked for. One whose line is not known goes
// on with that before it.
func (c *counter) pass(list []passage, x passage, span wpp.Span) []passage {
	switch {
	case x.at != none:
		x.call = span.Call
	case span.Line == 0 && span.Call == 0:
		return list
	default:
		for call := range c.snapshot.Stack(span.Call) {
			if call.Line == c.line && path.Clean(c.snapshot.Files[call.File]) == c.file {
				x.call = call.In
				break
			}
		}
	}
	if n := len(list); x.at == none && n > 0 && list[n-1].at == none && list[n-1].call == x.call {
		return list
	}
	return append(list, x)
}

// thread goes through a thread, and gives what it ran of what is asked for, by position. What it
// gives is good until it returns.
func (c *counter) thread(thread int, each func(position uint64, ran []numbered)) {
	c.begin()
	position := uint64(0)
	for sym := range c.snapshot.Threads[thread].Grammar.Expand(0) {
		if ran := c.visit(sym); len(ran) > 0 {
			each(position, ran)
		}
		position++
	}
}

// begin begins a thread.
func (c *counter) begin() { c.stack, c.resumed = c.stack[:0], false }

// visit takes the next symbol of the thread, and returns the instructions that ran in it and are
// asked for, with their numbers. They are good until the next.
func (c *counter) visit(sym uint32) []numbered {
	part := c.parts[sym]
	c.ran = c.ran[:0]
	if c.where.Kind == Line {
		c.visitLine(&c.snapshot.Symbols[sym], part)
	} else {
		for _, x := range part {
			c.count++
			c.ran = append(c.ran, numbered{x, c.count})
		}
	}
	return c.ran
}

func (c *counter) visitLine(p *wpp.Symbol, part []passage) {
	if p.IsMark {
		c.resumed = p.Mark == ops.Resume
		if p.Mark == ops.Unwind {
			c.stack = c.stack[:len(c.stack)-int(min(p.N, uint64(len(c.stack))))]
		}
		return
	}
	if p.Start == ops.StartEntry || c.resumed || len(c.stack) == 0 {
		c.stack = append(c.stack, activity{call: none})
	}
	c.resumed = false
	a := &c.stack[len(c.stack)-1]
	for _, x := range part {
		switch {
		case x.call == a.call:
		case x.at == none:
			a.call = none
		default:
			c.count++
			*a = activity{c.count, x.call}
		}
		if x.at != none {
			c.ran = append(c.ran, numbered{x, a.number})
		}
	}
	if p.End == ops.EndReturn || p.End == ops.EndTail {
		c.stack = c.stack[:len(c.stack)-1]
	}
}

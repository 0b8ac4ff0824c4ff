package ops

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A transcript is a Sink that writes down what it is given.
type transcript []string

func (t *transcript) EnterRoutine(routine int, _ Caller) {
	*t = append(*t, fmt.Sprintf("enter %d", routine))
}
func (t *transcript) NewPath(routine int, path, times uint64) {
	for range times {
		*t = append(*t, fmt.Sprintf("path %d %d", routine, path))
	}
}
func (t *transcript) LeaveRoutine()         { *t = append(*t, "leave") }
func (t *transcript) Mark(m Mark, n uint64) { *t = append(*t, fmt.Sprintf("%v %d", m, n)) }

// A form is where a path starts and ends. In these tests a path's number says so: 7*start + end.
type form struct {
	start Start
	end   End
}

func (f form) path() uint64 { return 7*uint64(f.start) + uint64(f.end) }
func formOf(path uint64) form {
	return form{Start(path / 7), End(path % 7)}
}

// A both hands operations to two sinks.
type both [2]Sink

func (b both) EnterRoutine(routine int, by Caller) {
	b[0].EnterRoutine(routine, by)
	b[1].EnterRoutine(routine, by)
}
func (b both) NewPath(routine int, path, times uint64) {
	b[0].NewPath(routine, path, times)
	b[1].NewPath(routine, path, times)
}
func (b both) LeaveRoutine()         { b[0].LeaveRoutine(); b[1].LeaveRoutine() }
func (b both) Mark(m Mark, n uint64) { b[0].Mark(m, n); b[1].Mark(m, n) }

// expand turns symbols back into operations, as a reader of a snapshot does.
func expand(symbols *Symbols, stream []uint32, sink Sink) {
	x := NewExpander(sink)
	for _, sym := range stream {
		m := symbols.Meaning(sym)
		if m.IsMark {
			x.Mark(m.Mark, m.N)
			continue
		}
		f := formOf(m.Path)
		x.Path(m.Routine, m.Path, f.start, f.end)
	}
}

// A program plays a thread for a sink: random calls, loops, returns, tail jumps, handlers,
// unwinding and gaps.
type program struct {
	t     *rapid.T
	sink  Sink
	stack []int // routines of the open activations
}

func (p *program) path(start Start, end End) {
	p.sink.NewPath(p.stack[len(p.stack)-1], form{start, end}.path(), 1)
}

func (p *program) enter(start Start) {
	p.stack = append(p.stack, rapid.IntRange(0, 3).Draw(p.t, "routine"))
	p.sink.EnterRoutine(p.stack[len(p.stack)-1], Unknown)
	p.path(start, rapid.SampledFrom([]End{EndLoop, EndCall, EndNoReturn, EndExtra}).Draw(p.t,
		"end"))
}

func (p *program) leave(n int) {
	for range n {
		p.stack = p.stack[:len(p.stack)-1]
		p.sink.LeaveRoutine()
	}
}

func (p *program) step() {
	if len(p.stack) == 0 {
		p.enter(StartEntry)
		return
	}
	switch rapid.IntRange(0, 7).Draw(p.t, "step") {
	case 0:
		p.enter(StartEntry)
	case 1:
		p.path(rapid.SampledFrom([]Start{StartLoop, StartCall, StartPad, StartExtra}).Draw(p.t,
			"start"), EndLoop)
	case 2:
		p.path(StartCall, EndReturn)
		p.leave(1)
	case 3:
		p.path(StartLoop, EndTail)
		p.leave(1)
		p.enter(StartEntry)
	case 4:
		n := rapid.IntRange(0, len(p.stack)).Draw(p.t, "unwound")
		p.path(StartLoop, EndCut)
		p.sink.Mark(Cut, 0)
		p.sink.Mark(Unwind, uint64(n))
		p.leave(n)
	case 5:
		p.sink.Mark(Handler, 0)
		p.enter(StartEntry)
	case 6: // a gap: all is given up, then something resumes
		p.sink.Mark(Gap, 3)
		p.sink.Mark(Unwind, uint64(len(p.stack)))
		p.leave(len(p.stack))
		p.sink.Mark(Resume, 0)
		p.enter(StartResume)
	case 7: // a resumed activation reports whole paths only
		p.sink.Mark(Resume, 0)
		p.enter(StartLoop)
	}
}

func TestExpanderUndoesRecorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var symbols Symbols
		var stream []uint32
		var want, got transcript
		recorder := NewRecorder(&symbols,
			func(sym uint32,
				times uint64) {
				stream = append(stream, slices.Repeat([]uint32{sym}, int(times))...)
			})
		p := &program{t: t, sink: both{recorder, &want}}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			p.step()
		}
		expand(&symbols, stream, &got)
		if !slices.Equal(got, want) {
			t.Fatalf("operations\n%q\nbecame\n%q", want, got)
		}
	})
}

// An Unwind mark that counts more than is open, from a hostile file, costs no time and leaves
// nothing that was not entered.
func TestExpanderBoundsUnwind(t *testing.T) {
	var got transcript
	x := NewExpander(&got)
	x.Path(1, 0, StartEntry, EndCall)
	x.Path(2, 0, StartEntry, EndCut)
	x.Mark(Unwind, 1<<63)
	x.Path(3, 0, StartCall, EndReturn)
	want := transcript{"enter 1", "path 1 0", "enter 2", "path 2 0", "unwind 9223372036854775808",
		"leave", "leave", "path 3 0"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func ExampleRecorder() {
	var symbols Symbols
	var stream []uint32
	var sink Sink = NewRecorder(&symbols,
		func(sym uint32,
			times uint64) {
			stream = append(stream, slices.Repeat([]uint32{sym}, int(times))...)
		})
	sink.EnterRoutine(0, Traced) // main
	sink.NewPath(0, 5, 1)        // to a call
	for range 2 {
		sink.EnterRoutine(1, Traced)
		sink.NewPath(1, 0, 1)
		sink.LeaveRoutine()
		sink.NewPath(0, 9, 1)
	}
	sink.Mark(Gap, 40)
	fmt.Println(stream, symbols.Len())
	// Output: [0 1 2 1 2 3] 4
}

func ExampleExpander() {
	var operations transcript
	x := NewExpander(&operations)
	x.Path(0, 5, StartEntry, EndCall)
	x.Path(1, 0, StartEntry, EndReturn)
	x.Path(0, 9, StartCall, EndCut)
	x.Mark(Unwind, 1)
	for _, op := range operations {
		fmt.Println(op)
	}
	// Output:
	// enter 0
	// path 0 5
	// enter 1
	// path 1 0
	// leave
	// path 0 9
	// unwind 1
	// leave
}

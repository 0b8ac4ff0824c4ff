package raw

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
)

// A transcript is a sink that writes down what it is given.
type transcript []string

func (t *transcript) EnterRoutine(routine int, _ ops.Caller) {
	*t = append(*t, fmt.Sprintf("EnterRoutine %d", routine))
}
func (t *transcript) NewPath(routine int, path, times uint64) {
	op := fmt.Sprintf("NewPath %d %d", routine, path)
	if times != 1 {
		op += fmt.Sprintf(" %d times", times)
	}
	*t = append(*t, op)
}
func (t *transcript) LeaveRoutine()             { *t = append(*t, "LeaveRoutine") }
func (t *transcript) Mark(m ops.Mark, n uint64) { *t = append(*t, fmt.Sprintf("%v %d", m, n)) }

// A listing is all that a reader returns.
type listing struct {
	threads []Thread
	read    []*transcript // by thread
}

func (l *listing) begin(t Thread) ops.Sink {
	l.threads = append(l.threads, t)
	l.read = append(l.read, &transcript{})
	return l.read[len(l.read)-1]
}

func list(trace []byte) (*Reader, *listing, error) {
	r, l := NewReader(bytes.NewReader(trace)), &listing{}
	return r, l, r.Read(l.begin)
}

// In these tests a path's number says where it starts and ends: 7*start + end, modulo 42.
func numberOf(start ops.Start, end ops.End) uint64 { return 7*uint64(start) + uint64(end) }

func describe(_ int, path uint64) (ops.Start, ops.End, error) {
	return ops.Start(path % 42 / 7), ops.End(path % 7), nil
}

// A step is a path or a mark of one of several threads.
type step struct {
	thread int
	times  uint64 // of a path
	ops.Meaning
}

// drawSteps draws what a decoder may say, and more: any marks between any paths.
func drawSteps(t *rapid.T) []step {
	one := rapid.Custom(func(t *rapid.T) step {
		s := step{thread: rapid.IntRange(0, 2).Draw(t, "thread")}
		if s.IsMark = rapid.IntRange(0, 3).Draw(t, "mark") == 0; s.IsMark {
			s.Mark, s.N = ops.Mark(rapid.IntRange(0, int(ops.Handler)).Draw(t,
				"kind")), rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Uint64()).Draw(t, "n")
			return s
		}
		s.Routine, s.times = rapid.IntRange(0, 3).Draw(t, "routine"), 1
		s.Path = rapid.Uint64Range(0, 41).Draw(t, "path") + 42*rapid.OneOf(rapid.Just(uint64(0)),
			rapid.Uint64Range(0, 1<<58)).Draw(t, "more")
		if start, end, _ := describe(0, s.Path); start == ops.StartLoop && end == ops.EndLoop {
			s.times = rapid.Uint64Range(1, 3).Draw(t, "times")
		}
		return s
	})
	return rapid.SliceOfN(one, 0, 60).Draw(t, "steps")
}

// write writes steps of threads that began in a hole, so that none of them can be wrong.
func write(steps []step) []byte {
	var out bytes.Buffer
	w := NewWriter(&out, describe)
	var threads []*ThreadWriter
	for i := range 3 {
		threads = append(threads, w.Thread(Thread{TID: 100 + i, Start: uint64(i), Name: "worker"}))
		threads[i].Mark(ops.Resume, 0)
	}
	for _, s := range steps {
		if s.IsMark {
			threads[s.thread].Mark(s.Mark, s.N)
		} else {
			threads[s.thread].NewPath(s.Routine, s.Path, s.times)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// pathsAndMarks leaves out what is entered and left.
func pathsAndMarks(t transcript) (kept transcript) {
	for _, op := range t {
		if op[0] != 'E' && op[0] != 'L' {
			kept = append(kept, op)
		}
	}
	return kept
}

// Paths and marks come back as they were written, in each thread's order, and routines by the order
// in which they come up.
func TestReaderUndoesWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t)
		r, l, err := list(write(steps))
		if err != nil {
			t.Fatal(err)
		}
		want := make([]transcript, 3)
		for i := range want {
			want[i].Mark(ops.Resume, 0)
		}
		index := map[int]int{}
		for _, s := range steps {
			if s.IsMark {
				want[s.thread].Mark(s.Mark, s.N)
				continue
			}
			if _, ok := index[s.Routine]; !ok {
				index[s.Routine] = len(index)
			}
			want[s.thread].NewPath(index[s.Routine], s.Path, s.times)
			start, end := r.Path(index[s.Routine], s.Path)
			if wantStart, wantEnd, _ := describe(0, s.Path); start != wantStart || end != wantEnd {
				t.Fatalf("path %d from %v to %v", s.Path, start, end)
			}
		}
		for i := range want {
			if got := pathsAndMarks(*l.read[i]); !slices.Equal(got, want[i]) {
				t.Fatalf("thread %d:\n%q, want\n%q", i, got, want[i])
			}
			if id := (Thread{100 + i, uint64(i), "worker"}); l.threads[i] != id {
				t.Fatalf("thread %+v, want %+v", l.threads[i], id)
			}
		}
	})
}

// Where nothing is missing, the operations are those that follow from paths and marks by package
// ops.
func TestOperationsFollow(t *testing.T) {
	paths := []struct {
		routine int
		start   ops.Start
		end     ops.End
	}{
		{0, ops.StartEntry, ops.EndCall}, {1, ops.StartEntry, ops.EndLoop}, {1, ops.StartLoop,
			ops.EndReturn},
		{0, ops.StartCall, ops.EndCall}, {0, ops.StartEntry, ops.EndTail}, {1, ops.StartEntry,
			ops.EndNoReturn},
	}
	var out bytes.Buffer
	w := NewWriter(&out, describe)
	thread := w.Thread(Thread{TID: 1})
	var want transcript
	x := ops.NewExpander(&want)
	for _, p := range paths {
		thread.EnterRoutine(p.routine, ops.Traced) // says nothing
		thread.NewPath(p.routine, numberOf(p.start, p.end), 1)
		x.Path(p.routine, numberOf(p.start, p.end), p.start, p.end)
	}
	thread.Mark(ops.Unwind, 2)
	x.Mark(ops.Unwind, 2)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, l, err := list(out.Bytes()); err != nil || !slices.Equal(*l.read[0], want) {
		t.Errorf("%v: %q, want %q", err, *l.read[0], want)
	}
}

func ExampleWriter() {
	var trace bytes.Buffer
	w := NewWriter(&trace, func(int, uint64) (ops.Start, ops.End,
		error) {
		return ops.StartEntry, ops.EndReturn, nil
	})
	w.DefineRoutine(0, Routine{Entry: 0x40, Name: "main"})
	w.Thread(Thread{TID: 7}).NewPath(0, 300, 1)
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("% x\n", trace.Bytes()[len(magic)+1:])
	// Output: 0b 00 40 04 6d 61 69 6e 0a 00 07 00 00 0c 00 ac 02 02 01 00 02 00 04 ac 02 03 0d
}

func ExampleReader() {
	var trace bytes.Buffer
	w := NewWriter(&trace, func(int, uint64) (ops.Start, ops.End,
		error) {
		return ops.StartEntry, ops.EndReturn, nil
	})
	w.DefineRoutine(0, Routine{Name: "main"})
	w.Thread(Thread{TID: 7}).NewPath(0, 300, 1)
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	r := NewReader(&trace)
	var read transcript
	err := r.Read(func(t Thread) ops.Sink {
		fmt.Println("thread", t.TID)
		return &read
	})
	fmt.Println(read, r.Routines()[0].Name, err)
	// Output:
	// thread 7
	// [EnterRoutine 0 NewPath 0 300 LeaveRoutine] main <nil>
}

func BenchmarkWriter(b *testing.B) {
	w := NewWriter(io.Discard, describe)
	thread := w.Thread(Thread{})
	for b.Loop() {
		thread.NewPath(1, 300, 1)
	}
}

package ppcompress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/store"
)

// Path 0 of every routine in these tests is from entry to call, 1 from call to call, 2 from call to
// return, 3 from entry to return.
func describe(_ int, path uint64) (ops.Start, ops.End, error) {
	starts := [...]ops.Start{ops.StartEntry, ops.StartCall, ops.StartCall, ops.StartEntry}
	ends := [...]ops.End{ops.EndCall, ops.EndCall, ops.EndReturn, ops.EndReturn}
	return starts[path], ends[path], nil
}

// sample is the trace of two threads that take turns. The second one began first, and has lost
// something.
func sample() []byte {
	var out bytes.Buffer
	w := raw.NewWriter(&out, describe)
	w.DefineRoutine(0, raw.Routine{Entry: 0x40, Name: "main"})
	a := w.Thread(raw.Thread{TID: 11, Start: 9, Name: "late"})
	b := w.Thread(raw.Thread{TID: 12, Start: 5, Name: "early"})
	a.NewPath(0, 0, 1)
	b.Mark(ops.Gap, 7)
	b.Mark(ops.Resume, 1)
	for range 10 {
		a.NewPath(1, 3, 1)
		b.NewPath(0, 1, 1)
		a.NewPath(0, 1, 1)
	}
	b.NewPath(0, 2, 1)
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// spell writes a thread's stream as ROUTINE#PATH and marks.
func spell(s *wpp.Snapshot, t *wpp.Thread) string {
	var words []string
	for sym := range t.Grammar.Expand(0) {
		if p := &s.Symbols[sym]; p.IsMark {
			words = append(words, fmt.Sprintf("%v:%d", p.Mark, p.N))
		} else {
			words = append(words,
				fmt.Sprintf("%s#%d:%v-%v", s.Routines[p.Routine].Name, p.Path, p.Start, p.End))
		}
	}
	return strings.Join(words, " ")
}

func TestTrace(t *testing.T) {
	s, err := Trace(bytes.NewReader(sample()), "sample.raw", spill.New(nil, spill.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	early, late := &s.Threads[0], &s.Threads[1]
	if early.TID != 12 || early.Name != "early" || late.TID != 11 || late.Name != "late" {
		t.Errorf("threads %d %s, %d %s", early.TID, early.Name, late.TID, late.Name)
	}
	want := "main#0:entry-call" + strings.Repeat(" routine_1#3:entry-return main#1:call-call", 10)
	if got := spell(s, late); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	want = "gap:7 resume:1" + strings.Repeat(" main#1:call-call", 10) + " main#2:call-return"
	if got := spell(s, early); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if early.Lost != 7 || early.Gaps != 1 || late.Lost != 0 || s.Figures.Lost != 7 ||
		s.Figures.Gaps != 1 {
		t.Errorf("losses: %+v, %+v, %+v", early, late, s.Figures)
	}
	if s.Images[0].Name != "sample.raw" || s.Routines[0].Entry != 0x40 ||
		s.Routines[0].Paths != 3 || s.Routines[1].Paths != 4 {
		t.Errorf("%+v %+v", s.Images, s.Routines)
	}
}

// A thread has ended where nothing of it is open or missing at the end of a whole trace.
func TestThreadsThatEnded(t *testing.T) {
	begun := []uint64{0}
	for name, tt := range map[string]struct {
		paths []uint64
		marks []ops.Mark
		want  bool
	}{
		"returned":  {paths: []uint64{0, 2}, want: true},
		"in a call": {paths: begun},
		"exited":    {paths: begun, marks: []ops.Mark{ops.Unwind}, want: true},
		"cut and exited": {paths: begun, marks: []ops.Mark{ops.Cut, ops.Unwind},
			want: true},
		"something was lost":     {paths: []uint64{3}, marks: []ops.Mark{ops.Gap}},
		"there were more around": {paths: []uint64{3}, marks: []ops.Mark{ops.Resume}},
	} {
		var out bytes.Buffer
		w := raw.NewWriter(&out, describe)
		thread := w.Thread(raw.Thread{TID: 1})
		for _, p := range tt.paths {
			thread.NewPath(0, p, 1)
		}
		for _, m := range tt.marks {
			thread.Mark(m, 1)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := Trace(&out, "x", spill.New(nil, spill.Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		if s.Threads[0].Ended != tt.want {
			t.Errorf("%s: ended %v", name, s.Threads[0].Ended)
		}
	}
}

// A trace that is cut off gives what there is, of threads that have not ended; one with a fault
// gives nothing.
func TestTraceCutOff(t *testing.T) {
	trace := sample()
	for n := 9; n < len(trace); n++ {
		s, err := Trace(bytes.NewReader(trace[:n]), "x", spill.New(nil, spill.Limits{}))
		if !errors.Is(err, raw.ErrTruncated) || s == nil {
			t.Fatalf("%d bytes: %v, %v", n, s, err)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if slices.ContainsFunc(s.Threads, func(t wpp.Thread) bool { return t.Ended }) {
			t.Fatalf("%d bytes: a thread has ended", n)
		}
	}
	trace[len(trace)-1] = 0xff
	if s, err := Trace(bytes.NewReader(trace), "x", spill.New(nil, spill.Limits{})); s != nil ||
		err == nil || errors.Is(err, raw.ErrTruncated) {
		t.Errorf("%v, %v", s, err)
	}
}

func bare(symbols ...uint32) (b []byte) {
	for _, v := range symbols {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// numbers are the numbers of the paths of a snapshot of bare symbols.
func numbers(s *wpp.Snapshot) (all []uint32) {
	for sym := range s.Threads[0].Grammar.Expand(0) {
		all = append(all, uint32(s.Symbols[sym].Path))
	}
	return all
}

func TestSymbolsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		symbol := rapid.OneOf(rapid.Uint32Range(0, 5), rapid.Uint32())
		want := slices.Repeat(rapid.SliceOf(symbol).Draw(t, "symbols"),
			rapid.SampledFrom([]int{1, 2, 3000}).Draw(t, "times"))
		s, err := Symbols(iotest.HalfReader(bytes.NewReader(bare(want...))), "x",
			spill.New(nil, spill.Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if got := numbers(s); !slices.Equal(got, want) {
			t.Fatalf("%d symbols, want %d", len(got), len(want))
		}
	})
}

// A symbol may be any number of 32 bits, those too that a grammar could not hold as they are.
func TestLargeSymbolsComeBack(t *testing.T) {
	want := []uint32{math.MaxUint32, 1 << 31, 0, math.MaxUint32, 1 << 31, 1<<31 - 1}
	s, err := Symbols(bytes.NewReader(bare(want...)), "x", spill.New(nil, spill.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := numbers(s); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestSymbolFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace io.Reader
		want  string
		kept  []uint32 // nil: there is no snapshot
	}{
		{"cut off", bytes.NewReader(bare(5, 6, 7)[:10]),
			"symbols end at byte 10, within one of 4 bytes: the trace is cut off", []uint32{5, 6}},
		{"broken", io.MultiReader(bytes.NewReader(bare(5)), iotest.ErrReader(errors.New("broken"))),
			"read symbols at byte 4: broken", nil},
	} {
		s, err := Symbols(c.trace, "x", spill.New(nil, spill.Limits{}))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if (s != nil) != (c.kept != nil) || s != nil && !slices.Equal(numbers(s), c.kept) {
			t.Errorf("%s: snapshot %v", c.name, s)
		}
	}
}

// FuzzSymbols reads any bytes: they come back, or there is an error.
func FuzzSymbols(f *testing.F) {
	f.Add(bare(1, 2, 1, 2, math.MaxUint32))
	f.Add(bare(1 << 31)[:3])
	f.Fuzz(func(t *testing.T, trace []byte) {
		s, err := Symbols(bytes.NewReader(trace), "x", spill.New(nil, spill.Limits{}))
		if s == nil {
			return
		}
		if got := bare(numbers(s)...); !bytes.HasPrefix(trace, got) ||
			err == nil && len(got) != len(trace) {
			t.Errorf("% x came back as % x, %v", trace, got, err)
		}
	})
}

// FuzzTrace makes snapshots of anything: what is accepted is a good one.
func FuzzTrace(f *testing.F) {
	f.Add(sample())
	f.Fuzz(func(t *testing.T, trace []byte) {
		if s, _ := Trace(bytes.NewReader(trace), "x", spill.New(nil, spill.Limits{})); s != nil {
			if err := format.Write(io.Discard, s); err != nil {
				t.Error(err)
			}
		}
	})
}

func ExampleTrace() {
	var trace bytes.Buffer
	w := raw.NewWriter(&trace,
		func(int, uint64) (ops.Start, ops.End, error) { return ops.StartEntry, ops.EndReturn, nil })
	w.DefineRoutine(0, raw.Routine{Name: "main"})
	w.Thread(raw.Thread{TID: 7}).NewPath(0, 300, 1)
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	s, err := Trace(&trace, "example", spill.New(nil, spill.Limits{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Threads[0].TID, s.Routines[0].Name, s.Symbols[0].Path)
	// Output: 7 main 300
}

func ExampleSymbols() {
	s, err := Symbols(strings.NewReader("\x01\x00\x00\x00\x02\x00\x00\x00"), "example",
		spill.New(nil, spill.Limits{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(numbers(s))
	// Output: [1 2]
}

func BenchmarkTrace(b *testing.B) {
	var out bytes.Buffer
	w := raw.NewWriter(&out, describe)
	thread := w.Thread(raw.Thread{})
	thread.NewPath(0, 0, 1)
	for i := range 1_000_000 {
		thread.NewPath(1+i%7*(i%11), 3, 1)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		if _, err := Trace(bytes.NewReader(out.Bytes()), "x",
			spill.New(nil, spill.Limits{})); err != nil {
			b.Fatal(err)
		}
	}
}

// What is spilled meanwhile changes nothing.
func TestTraceWithLittleMemory(t *testing.T) {
	var trace bytes.Buffer
	w := raw.NewWriter(&trace, describe)
	var threads []*raw.ThreadWriter
	for i := range 3 {
		threads = append(threads,
			w.Thread(raw.Thread{TID: 10 + i, Start: uint64(9 - i), Name: "t"}))
	}
	for i, x := 0, uint64(1); i < 60_000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		threads[x>>40%3].NewPath(int(x>>33%40), 3, 1)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := Trace(bytes.NewReader(trace.Bytes()), "x", spill.New(nil, spill.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.wpp")
	rec := spill.New(store.NewDraft(path), spill.Limits{Thread: 100_000})
	s, err := Trace(bytes.NewReader(trace.Bytes()), "x", rec)
	if err != nil {
		t.Fatal(err)
	}
	if s.Threads[0].Grammar.NumSegments() < 2 {
		t.Error("nothing was spilled")
	}
	if err := rec.Finish(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got, err := store.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Threads {
		if a, b := &want.Threads[i], &got.Threads[i]; a.TID != b.TID || spell(want, a) != spell(got,
			b) {
			t.Errorf("thread %d is another", i)
		}
	}
	if !slices.EqualFunc(want.Routines, got.Routines,
		func(a, b wpp.Routine) bool { return a.Name == b.Name && a.Paths == b.Paths }) {
		t.Error("other routines")
	}
}

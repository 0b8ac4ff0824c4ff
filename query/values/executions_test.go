package values_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// fact is a snapshot of paths of
//
//	1	fact:   test; je 5      | block 0
//	2	        nop             | block 1
//	3	        call fact       |
//	3	        imul            | block 2
//	4	        (of pow, inlined on line 3) | block 3
//	3	        store; jne 3    |
//	5	        ret             | block 4
//
// whose values are of no interest.
func fact(stream ...uint32) *wpp.Snapshot {
	r := wpp.Routine{Name: "fact", Entry: 0x1000, Paths: 9}
	for i, spans := range [][]wpp.Span{
		{{To: 2, Line: 1, Last: 1}},
		{{To: 1, Line: 2, Last: 2}, {From: 1, To: 2, Line: 3, Last: 3}},
		{{To: 1, Line: 3, Last: 3}},
		{{To: 1, Line: 4, Last: 4, Call: 1}, {From: 1, To: 3, Line: 3, Last: 3}},
		{{To: 1, Line: 5, Last: 5}},
	} {
		b := wpp.Block{Addr: 0x1000 + 0x10*uint64(i), Spans: spans, Line: spans[0].Line,
			Last: spans[0].Line}
		for range spans[len(spans)-1].To {
			b.Lengths = append(b.Lengths, 1)
		}
		r.Blocks = append(r.Blocks, b)
	}
	return &wpp.Snapshot{Images: make([]wpp.Image, 1), Files: []string{"src/fact.c"},
		EachLine: true, Calls: []wpp.Call{{Name: "pow", Line: 3}},
		Routines: []wpp.Routine{r, {Name: "add", Entry: 0x2000, LeftOut: "not selected"}},
		Symbols: []wpp.Symbol{
			{Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0, 1}},
			{Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0, 4}},
			{Start: ops.StartCall, End: ops.EndReturn, Blocks: []int{2, 3, 4}},
			{Start: ops.StartCall, End: ops.EndLoop, Blocks: []int{2, 3}},
			{Start: ops.StartLoop, End: ops.EndReturn, Blocks: []int{3, 4}},
			{Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{3}},
			{IsMark: true, Mark: ops.Resume},
			{IsMark: true, Mark: ops.Unwind, N: 1},
		},
		Threads:  []wpp.Thread{{TID: 7, Grammar: wpptest.GrammarOf(stream...)}},
		Sections: []*wpp.Section{wpp.NewSection(wet.CodeKind, nil)}}
}

// TestExecutionsOfALine: what a line calls, itself too, and what is inlined in it, does not end an
// execution of it; another line does, and so does the end of its routine.
func TestExecutionsOfALine(t *testing.T) {
	for _, c := range []struct {
		stream []uint32
		at     string
		want   []string // executions: positions and addresses
	}{
		{[]uint32{1, 1}, "fact.c:1", []string{"0:1000 0:1001", "1:1000 1:1001"}},
		{[]uint32{0, 1, 2}, "fact.c:3", []string{"0:1011 2:1020 2:1031 2:1032"}},
		{[]uint32{0, 0, 1, 2, 2}, "fact.c:3", []string{"0:1011 4:1020 4:1031 4:1032",
			"1:1011 3:1020 3:1031 3:1032"}},
		{[]uint32{0, 1, 3, 5, 4}, "fact.c:3", []string{
			"0:1011 2:1020 2:1031 2:1032 3:1031 3:1032 4:1031 4:1032"}},
		{[]uint32{0, 1, 3, 5, 4}, "fact.c:4", []string{"2:1030", "3:1030", "4:1030"}},
		{[]uint32{0, 0, 7, 2}, "fact.c:3", []string{"0:1011 3:1020 3:1031 3:1032", "1:1011"}},
		{[]uint32{6, 2, 0, 1, 2}, "fact.c:3", []string{"1:1020 1:1031 1:1032",
			"2:1011 4:1020 4:1031 4:1032"}},
		{[]uint32{0, 1, 2, 1}, "fact", []string{"0:1000", "1:1000", "3:1000"}},
		{[]uint32{0, 1, 3, 5}, "fact+0x31", []string{"2:1031", "3:1031"}},
		{[]uint32{0, 1, 3, 5}, "fact+49", []string{"2:1031", "3:1031"}},
		{[]uint32{0, 1, 3, 5}, "<fact+49>", []string{"2:1031", "3:1031"}},
		{[]uint32{1, 1}, "fact(int)", []string{"0:1000", "1:1000"}},
	} {
		s := fact(c.stream...)
		w, err := values.Find(s, c.at)
		if err != nil {
			t.Errorf("%s: %v", c.at, err)
			continue
		}
		for n, want := range c.want {
			x, err := values.FindExecution(s, &values.Question{Where: w, Instance: uint64(n + 1)})
			if err != nil || x.Of != uint64(len(c.want)) || textOf(x) != want {
				t.Errorf("%s of %d, instance %d: %+v, %v, want %s", c.at, c.stream, n+1, x, err, want)
			}
		}
		last, err := values.FindExecution(s, &values.Question{Where: w, Threads: []int{7}})
		if err != nil || textOf(last) != c.want[len(c.want)-1] {
			t.Errorf("%s of %d, the last: %+v, %v", c.at, c.stream, last, err)
		}
	}
}

func textOf(x *values.Execution) string {
	var list []string
	for _, r := range x.Ran {
		list = append(list, fmt.Sprintf("%d:%x", r.At.Symbol, r.Addr))
	}
	return strings.Join(list, " ")
}

// naive numbers executions of a line as its definition has it, by instruction.
type naive struct {
	s      *wpp.Snapshot
	isLine func(wpp.Span) bool
	stack  [][2]uint64 // of each activation: the execution it is amid, and the last one
	count  uint64
	got    []uint64 // of each instruction of the line
	sym    uint32
}

func (n *naive) EnterRoutine(int, ops.Caller) { n.stack = append(n.stack, [2]uint64{}) }
func (n *naive) LeaveRoutine()                { n.stack = n.stack[:len(n.stack)-1] }
func (n *naive) Mark(ops.Mark, uint64)        {}

func (n *naive) NewPath(int, uint64, uint64) {
	if len(n.stack) == 0 {
		n.stack = append(n.stack, [2]uint64{})
	}
	a := &n.stack[len(n.stack)-1]
	for p := range n.s.Pieces(n.sym) {
		for i := p.From; i < p.To; i++ {
			span := values.SpanOf(p.Block, i)
			switch {
			case n.isLine(span) && a[0] == 0:
				n.count++
				a[0] = n.count
				fallthrough
			case n.isLine(span):
				n.got = append(n.got, a[0])
			case span.Call == 0 || !n.isLine(wpp.Span{Line: n.s.Calls[0].Line}):
				a[0] = 0
			}
		}
	}
}

// drawStream draws a well-formed stream of the symbols of fact.
func drawStream(t *rapid.T) (stream []uint32) {
	open, resumed := 0, false
	for range rapid.IntRange(1, 30).Draw(t, "length") {
		symbols := []uint32{0, 1, 2, 3, 4, 5, 6, 7}
		switch {
		case resumed:
			symbols = symbols[:6]
		case open == 0:
			symbols = []uint32{0, 1, 6}
		}
		sym := rapid.SampledFrom(symbols).Draw(t, "symbol")
		stream = append(stream, sym)
		if sym < 2 || resumed {
			open++
		}
		if sym == 1 || sym == 2 || sym == 4 || sym == 7 {
			open--
		}
		resumed = sym == 6
	}
	return stream
}

// TestAnyExecutions: executions of a line are what its definition says, whatever ran.
func TestAnyExecutions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := drawStream(t)
		s := fact(stream...)
		line := rapid.IntRange(1, 5).Draw(t, "line")
		n := &naive{s: s, isLine: func(x wpp.Span) bool { return x.Line == line }}
		x := ops.NewExpander(n)
		for _, sym := range stream {
			p := &s.Symbols[sym]
			if n.sym = sym; p.IsMark {
				x.Mark(p.Mark, p.N)
			} else {
				x.Path(p.Routine, p.Path, p.Start, p.End)
			}
		}
		w, err := values.Find(s, fmt.Sprintf("fact.c:%d", line))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range n.count {
			x, err := values.FindExecution(s, &values.Question{Where: w, Instance: i + 1})
			if err != nil || x.Of != n.count {
				t.Fatalf("instance %d: %+v, %v, want %d", i+1, x, err, n.count)
			}
			for _, r := range x.Ran {
				got = append(got, fmt.Sprintf("%4d:%x of %d", r.At.Symbol, r.Addr, x.Instance))
			}
		}
		slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:9], b[:9]) })
		var numbers []uint64
		for _, text := range got {
			var number uint64
			if _, err := fmt.Sscanf(text[strings.Index(text, "of "):], "of %d", &number); err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, number)
		}
		if !slices.Equal(numbers, n.got) {
			t.Fatalf("%v, want %v", got, n.got)
		}
	})
}

// TestNotThere: what cannot be asked says why, and what to do.
func TestNotThere(t *testing.T) {
	s := fact(1, 1)
	s.Routines = append(s.Routines, wpp.Routine{Name: "sub", Entry: 0x3000,
		LeftOut: "its jumps are not known"}, wpp.Routine{Name: "idle", Entry: 0x4000, Paths: 1},
		wpp.Routine{Name: "part.isra.0", Entry: 0x5000}, wpp.Routine{Name: "both.isra.0"},
		wpp.Routine{Name: "both.constprop.1"})
	for at, want := range map[string]string{
		"add":           "find add: add was not traced: record it too, with -F '^add$'",
		"add+0x4":       "find add+0x4: add was not traced: record it too, with -F '^add$'",
		"sub":           "find sub: sub was not traced: its jumps are not known",
		"idle":          "find idle: idle was traced, and did not run",
		"part":          "find part: part.isra.0 was traced, and did not run",
		"both":          "find both: both may be one of both.isra.0, both.constprop.1: name that",
		"fact+0x2":      "find fact+0x2: no instruction that ran begins there: dump --as insns lists",
		"fact+1f":       "find fact+1f: 1f is no number of bytes: in hex it begins with 0x",
		"fact.c:9":      "find fact.c:9: no routine that was traced and ran has code of that line (1 of 7 were not",
		"fact.c:2":      "find fact.c:2: it was not executed",
		"fact.c:1":      "find fact.c:1: there is no instance 3: it has 1 to 2",
		"fact+0x0":      "find fact+0x0: there is no instance 3: it has 1 to 2",
		"other.c:1":     "find other.c:1: no code of it ran, but of fact.c",
		"facts+0x10":    "find facts+0x10: no routine facts, but fact",
		"nothing at al": "find nothing at al: no routine nothing at al",
	} {
		w, err := values.Find(s, at)
		if err == nil {
			q := &values.Question{Where: w, Instance: 3}
			if err = values.Each(s, q, nil); err != nil {
				_, err = values.FindExecution(s, q)
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
	w, err := values.Find(s, "fact")
	if err != nil {
		t.Fatal(err)
	}
	_, err = values.FindExecution(s, &values.Question{Where: w, Threads: []int{99}})
	if want := "select thread 99: the snapshot has threads 7"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestFindAddress: an address is one of the program file, or else one of the process.
func TestFindAddress(t *testing.T) {
	s := querytest.Values()
	for at, want := range map[string]string{
		"0x401003": "0 401003", "*0x401003": "0 401003", "401003": "0 401003",
		"0x401001": "find 0x401001: it is clip+0x1: no instruction that ran begins there: dump --as insns lists those",
		"0x501000": "find 0x501000: it is no address of the program: dump --as values prints those",
		"0xg":      "find 0xg: 0xg is no address in hex",
	} {
		got := ""
		if w, err := values.Find(s, at); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%d %x", w.Kind, w.At[0].Addr)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}

// TestFindWithoutValues: in a snapshot of paths alone nothing is found, nor looked for.
func TestFindWithoutValues(t *testing.T) {
	for _, at := range []string{"0x501000", "0x401003", "clip", "end"} {
		if w, err := values.Find(querytest.Compressor(), at); !errors.Is(err, values.ErrNone) {
			t.Errorf("%s: %+v, %v", at, w, err)
		}
	}
}

// TestFindInTheProcess: an address of the process, as values have it, is that of the program file
// behind where the program was loaded.
func TestFindInTheProcess(t *testing.T) {
	routine := &wet.Routine{Blocks: []wet.Block{{Addr: 0x1000, Insns: []machine.Insn{
		{Op: machine.NoOp, Len: 1}, {Op: machine.NoOp, Len: 2}}}}}
	code := wet.NewCode(func(int) *wet.Routine { return routine })
	code.Routine(0)
	code.Place(0, 0x55e0_0000_0000)
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1), Routines: []wpp.Routine{{Name: "f.isra.0",
		Entry: 0x1000, Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1003}},
		Blocks: []wpp.Block{{Addr: 0x1000, Lengths: []byte{1, 2}}}}},
		Sections: []*wpp.Section{code.Section()}}
	for _, at := range []string{"0x1001", "0x55e000001001", "*0x55e000001001", "55e000001001",
		"f.isra.0+1", "f+1", "f+0x1", "<f+1>", "f(long)+1"} {
		if w, err := values.Find(s, at); err != nil || len(w.At) != 1 || w.At[0].Addr != 0x1001 {
			t.Errorf("%s: %+v, %v", at, w, err)
		}
	}
	_, err := values.Find(s, "0x55e000001002")
	const want = "find 0x55e000001002: it is f.isra.0+0x2: no instruction that ran begins there"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Package wpptest has snapshots for the tests of other packages: small ones, any ones, and
// comparisons.
package wpptest

import (
	"debug/elf"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
)

// Difference compares snapshots; nil and empty slices are equal, grammars are what their bodies
// are.
func Difference(want, got *wpp.Snapshot) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(),
		cmp.AllowUnexported(wpp.Grammar{}))
}

func GrammarOf(stream ...uint32) *wpp.Grammar {
	g := sequitur.New()
	g.AppendAll(stream)
	return wpp.FromSequitur(g)
}

// Small has one of everything: it is the files testdata/version*.wpp.
func Small() *wpp.Snapshot {
	return &wpp.Snapshot{
		Machine: elf.EM_X86_64,
		Images: []wpp.Image{{Name: "/usr/bin/demo", BuildID: []byte{0xde, 0xad}},
			{Name: "/lib/libdemo.so"}},
		Files: []string{"demo.c", "lib.h"},
		Routines: []wpp.Routine{
			{
				Name: "demo::main()", Symbol: "_ZN4demo4mainEv", Entry: 0x401000, Paths: 5,
				Ranges: []wpp.Range{{Lo: 0x401000, Hi: 0x401020}, {Lo: 0x400100, Hi: 0x400104}},
				Blocks: []wpp.Block{
					{Addr: 0x401000, Lengths: []byte{1, 3, 5}, Line: 10, Last: 12},
					{Addr: 0x401009, Lengths: []byte{2}, File: 1, Line: 3, Last: 3},
					{Addr: 0x400100, Lengths: []byte{1, 1, 2}},
				},
			},
			{Name: "fn_402000", Image: 1, Entry: 0x402000, Paths: 1,
				Ranges: []wpp.Range{{Lo: 0x402000, Hi: 0x402001}}, LeftOut: "cfa is an expression"},
		},
		Symbols: []wpp.Symbol{
			{Path: 0, Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0, 1}},
			{IsMark: true, Mark: ops.Gap, N: 17},
			{Path: 6, Start: ops.StartResume, End: ops.EndCut, Blocks: []int{0, 1, 2}, Skip: 2,
				Cut: 1},
			{Path: 7, Start: ops.StartEntry, End: ops.EndCut},
			{IsMark: true, Mark: ops.Resume},
		},
		Threads: []wpp.Thread{
			{TID: 4711, Name: "demo", Grammar: GrammarOf(0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4)},
			{TID: 4712, Name: "w\xff", Grammar: GrammarOf(), Lost: 17, Gaps: 1},
		},
		Figures: wpp.Figures{
			Tool: "1.0", Command: []string{"demo", "", "-x"}, PID: 4711, Kernel: "6.18.5",
			Start: time.Unix(1700000000, 5).UTC(), Duration: 3 * time.Second,
			Hits: 1, HitsSingleStep: 2, Events: 3, Lost: 17, Gaps: 1, Probes: 4,
			ProbesSingleStep: 5, SlowDown: 1.5, Anomalies: 6,
		},
	}
}

// Any draws a snapshot that Check accepts.
func Any(t *rapid.T) *wpp.Snapshot {
	text := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "text"))
	})
	s := &wpp.Snapshot{
		Machine: elf.Machine(rapid.Uint16().Draw(t, "machine")), EachLine: rapid.Bool().Draw(t,
			"each line"),
		Images: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Image {
			return wpp.Image{Name: text.Draw(t, "image"),
				BuildID: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "build id")}
		}), 1, 3).Draw(t, "images"),
		Files: rapid.SliceOfN(text, 1, 3).Draw(t, "files"),
		Figures: wpp.Figures{
			Command:  rapid.SliceOfN(text, 0, 3).Draw(t, "command"),
			PID:      int(rapid.Int32().Draw(t, "pid")),
			Start:    time.Unix(0, rapid.Int64Min(1).Draw(t, "start")).UTC(),
			Duration: time.Duration(rapid.Int64().Draw(t, "duration")), Ended: text.Draw(t,
				"ended"),
			Hits:       rapid.Uint64().Draw(t, "hits"),
			HitTime:    time.Duration(rapid.Int64().Draw(t, "hit")),
			ReportTime: time.Duration(rapid.Int64().Draw(t, "report")),
			CPUTime:    time.Duration(rapid.Int64().Draw(t, "cpu")),
			SlowDown:   rapid.Float64().Draw(t, "slow-down"),
			Windows:    rapid.Uint64().Draw(t, "windows"), Sampled: rapid.Float64().Draw(t,
				"sampled"), SampledMost: rapid.Float64().Draw(t, "sampled most"),
			SampledLeast:  rapid.Float64().Draw(t, "sampled least"),
			SlowDownVague: rapid.Bool().Draw(t, "vague"), SlowDownMost: rapid.Float64().Draw(t,
				"slow-down at most"),
			SlowDownLikely: rapid.Float64().Draw(t, "likely slow-down"),
			HeldUp:         time.Duration(rapid.Int64().Draw(t, "held up")),
			WaitStatus:     rapid.Ptr(rapid.Uint32(), true).Draw(t, "wait status"),
		},
	}
	s.Calls = anyCalls(t, s, text)
	s.Routines = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Routine {
		return anyRoutine(t, s, text)
	}), 1, 4).Draw(t, "routines")
	s.Symbols = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Symbol {
		return anySymbol(t, s.Routines)
	}), 1, 6).Draw(t, "symbols")
	terminal := rapid.Uint32Range(0, uint32(len(s.Symbols)-1))
	s.Threads = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Thread {
		return wpp.Thread{
			TID: int(rapid.Int32().Draw(t, "tid")), Name: text.Draw(t, "name"),
			Lost: rapid.Uint64().Draw(t, "lost"), Ended: rapid.Bool().Draw(t, "ended"),
			Grammar: GrammarOf(rapid.SliceOfN(terminal, 0, 60).Draw(t, "stream")...),
		}
	}), 0, 3).Draw(t, "threads")
	return s
}

func anyRoutine(t *rapid.T, s *wpp.Snapshot, text *rapid.Generator[string]) wpp.Routine {
	const high = 1<<64 - 1<<20 // leaves room for a block
	return wpp.Routine{
		Name: text.Draw(t, "name"), Symbol: text.Draw(t, "symbol"), LeftOut: text.Draw(t,
			"left out"),
		Image: rapid.IntRange(0, len(s.Images)-1).Draw(t, "image"),
		Entry: rapid.Uint64().Draw(t, "entry"), Paths: rapid.Uint64().Draw(t, "paths"),
		Ranges: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Range {
			lo := rapid.Uint64Range(0, high).Draw(t, "lo")
			return wpp.Range{Lo: lo, Hi: rapid.Uint64Min(lo+1).Draw(t, "hi")}
		}), 0, 3).Draw(t, "ranges"),
		Blocks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) wpp.Block {
			b := wpp.Block{
				Addr:    rapid.Uint64Range(0, high).Draw(t, "addr"),
				Lengths: rapid.SliceOfN(rapid.ByteRange(1, 15), 1, 5).Draw(t, "lengths"),
			}
			if rapid.Bool().Draw(t, "line known") {
				b.File = rapid.IntRange(0, len(s.Files)-1).Draw(t, "file")
				b.Line = rapid.IntRange(1, 1<<31-1).Draw(t, "line")
				b.Last = rapid.IntRange(b.Line, 1<<31-1).Draw(t, "last")
			}
			if rapid.Bool().Draw(t, "inlined") {
				b.Spans = anySpans(t, s, len(b.Lengths))
			}
			return b
		}), 0, 4).Draw(t, "blocks"),
	}
}

func anySymbol(t *rapid.T, routines []wpp.Routine) wpp.Symbol {
	if rapid.Bool().Draw(t, "mark") {
		return wpp.Symbol{IsMark: true,
			Mark: ops.Mark(rapid.IntRange(0, int(ops.Handler)).Draw(t, "kind")),
			N:    rapid.Uint64().Draw(t, "n")}
	}
	p := wpp.Symbol{
		Routine: rapid.IntRange(0, len(routines)-1).Draw(t, "routine"),
		Path:    rapid.Uint64().Draw(t, "path"),
		Start:   ops.Start(rapid.IntRange(0, int(ops.StartResume)).Draw(t, "start")),
		End:     ops.End(rapid.IntRange(0, int(ops.EndCut)).Draw(t, "end")),
	}
	blocks := routines[p.Routine].Blocks
	if len(blocks) == 0 {
		return p
	}
	p.Blocks = rapid.SliceOfN(rapid.IntRange(0, len(blocks)-1), 0, 5).Draw(t, "blocks")
	if n := len(p.Blocks); n > 0 {
		p.Skip = rapid.IntRange(0, len(blocks[p.Blocks[0]].Lengths)).Draw(t, "skip")
		last := len(blocks[p.Blocks[n-1]].Lengths)
		if n == 1 {
			last -= p.Skip
		}
		p.Cut = rapid.IntRange(0, last).Draw(t, "cut")
	}
	return p
}

// Inlined is Small with inlined calls: it is the file
// testdata/version3-inlined.wpp.
func Inlined() *wpp.Snapshot {
	s := Small()
	s.Calls = []wpp.Call{{Name: "demo::step", Line: 11},
		{Name: "std::min<int>", File: 1, Line: 30, In: 1}, {Line: 0}}
	s.Routines[0].Blocks[0].Spans = []wpp.Span{{From: 0, To: 1, Line: 10, Last: 10},
		{From: 1, To: 3, Call: 2, File: 1, Line: 7, Last: 9}}
	s.Routines[0].Blocks[1].Spans = []wpp.Span{{From: 0, To: 1, Call: 3}}
	return s
}

func anyCalls(t *rapid.T, s *wpp.Snapshot, text *rapid.Generator[string]) (calls []wpp.Call) {
	for i := range rapid.IntRange(0, 4).Draw(t, "calls") {
		c := wpp.Call{Name: text.Draw(t, "callee"), In: rapid.IntRange(0, i).Draw(t, "in")}
		if rapid.Bool().Draw(t, "place known") {
			c.File, c.Line = rapid.IntRange(0, len(s.Files)-1).Draw(t, "file"), rapid.IntRange(1,
				1<<31-1).Draw(t, "line")
		}
		calls = append(calls, c)
	}
	return calls
}

// anySpans draws spans of a block of n instructions.
func anySpans(t *rapid.T, s *wpp.Snapshot, n int) (spans []wpp.Span) {
	for at := 0; at < n; {
		x := wpp.Span{From: at, To: rapid.IntRange(at+1, n).Draw(t, "to"),
			Call: rapid.IntRange(0, len(s.Calls)).Draw(t, "call")}
		if rapid.Bool().Draw(t, "line known") {
			x.File, x.Line = rapid.IntRange(0, len(s.Files)-1).Draw(t, "file"), rapid.IntRange(1,
				1<<31-1).Draw(t, "line")
			x.Last = rapid.IntRange(x.Line, 1<<31-1).Draw(t, "last")
		}
		spans = append(spans, x)
		at = x.To
	}
	return spans
}

// Repetitive is a snapshot one of whose threads repeats itself, so that both ways of coding
// segments are met.
func Repetitive() *wpp.Snapshot {
	s := Small()
	s.Threads[0].Grammar = GrammarOf(slices.Repeat([]uint32{0, 1}, 100)...)
	return s
}

func SameStreams(t interface {
	Fatalf(format string, args ...any)
}, want, got *wpp.Snapshot) {
	if len(want.Threads) != len(got.Threads) {
		t.Fatalf("%d threads, want %d", len(got.Threads), len(want.Threads))
	}
	for i := range want.Threads {
		a, b := &want.Threads[i], &got.Threads[i]
		if !slices.Equal(slices.Collect(a.Grammar.Expand(0)),
			slices.Collect(b.Grammar.Expand(0))) || a.TID != b.TID || a.Name != b.Name ||
			a.Lost != b.Lost || a.Ended != b.Ended {
			t.Fatalf("thread %d is another", i)
		}
		if a.Grammar.Length(0) != b.Grammar.Length(0) {
			t.Fatalf("thread %d has %d symbols, want %d", i, b.Grammar.Length(0),
				a.Grammar.Length(0))
		}
	}
}

// InSegments returns a snapshot whose threads' streams are those of another's, cut by a rule into
// segments in memory.
func InSegments(s *wpp.Snapshot, cut func(length int) []int) *wpp.Snapshot {
	c := *s
	c.Threads = slices.Clone(s.Threads)
	for i := range c.Threads {
		stream := slices.Collect(s.Threads[i].Grammar.Expand(0))
		var list []*wpp.Segment
		at := 0
		for _, end := range append(cut(len(stream)), len(stream)) {
			list = append(list, wpp.NewSegment(GrammarOf(stream[at:end]...)))
			at = end
		}
		c.Threads[i].Grammar = wpp.Join(list)
	}
	return &c
}

// Cuts draws a rule for InSegments: six segments at most, which may be empty.
func Cuts(t *rapid.T) func(length int) []int {
	return func(length int) []int {
		ends := rapid.SliceOfN(rapid.IntRange(0, length), 0, 5).Draw(t, "Cuts")
		slices.Sort(ends)
		return ends
	}
}

// Loops is a stream of loops in loops, with some chance in them.
func Loops(n int) []uint32 {
	var s []uint32
	for x := uint32(1); len(s) < n; x = x*1664525 + 1013904223 {
		for range x >> 29 {
			s = append(s, 10, 11, x>>20&3, 12, 13)
		}
		s = append(s, 20+x>>27)
	}
	return s
}

// Doubling is a grammar of n rules besides the start rule: each derives twice what the next does,
// the last one the terminal 7.
func Doubling(n int) [][]uint32 {
	bodies := make([][]uint32, n+1)
	bodies[0] = []uint32{wpp.RuleSymbol(1)}
	for r := 1; r < n; r++ {
		bodies[r] = []uint32{wpp.RuleSymbol(r + 1), wpp.RuleSymbol(r + 1)}
	}
	bodies[n] = []uint32{7}
	return bodies
}

// InHalves hands the threads of a snapshot to spill in halves, in turns, with the symbols that they
// need and were not handed over before, and returns the snapshot of what it returned.
func InHalves(s *wpp.Snapshot,
	spill func(tables *wpp.Snapshot, thread int, t wpp.Thread) (*wpp.Segment,
		error)) (*wpp.Snapshot, error) {
	final := *s
	final.Threads = slices.Clone(s.Threads)
	lists := make([][]*wpp.Segment, len(s.Threads))
	handed := 0
	for i, th := range s.Threads {
		stream := slices.Collect(th.Grammar.Expand(0))
		part := stream[:len(stream)/2]
		tables := *s
		tables.Threads = nil
		known := handed
		for _, sym := range part {
			known = max(known, int(sym)+1)
		}
		tables.Symbols = s.Symbols[handed:known]
		handed = known
		th.Grammar = GrammarOf(part...)
		x, err := spill(&tables, i, th)
		if err != nil {
			return nil, err
		}
		rest := wpp.NewSegment(GrammarOf(stream[len(stream)/2:]...))
		lists[i] = []*wpp.Segment{x, rest}
	}
	for i := range lists {
		final.Threads[i].Grammar = wpp.Join(lists[i])
	}
	return &final, nil
}

// Bodies is the rules of lines like "S AAB": upper-case letters are rules, S the start rule, others
// terminals.
func Bodies(lines []string) [][]uint32 {
	numbers := map[rune]int{}
	for i, line := range lines {
		numbers[rune(line[0])] = i
	}
	var bodies [][]uint32
	for _, line := range lines {
		var body []uint32
		for _, c := range line[2:] {
			if r, ok := numbers[c]; ok {
				body = append(body, wpp.RuleSymbol(r))
			} else {
				body = append(body, uint32(c))
			}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// Beginnings fails the test unless the threads of one snapshot are Beginnings of another's, and
// counts their symbols.
func Beginnings(t *testing.T, name string, want, got *wpp.Snapshot) (symbols uint64) {
	t.Helper()
	for i := range got.Threads {
		stream := slices.Collect(got.Threads[i].Grammar.Expand(0))
		j := slices.IndexFunc(want.Threads,
			func(t wpp.Thread) bool { return t.TID == got.Threads[i].TID })
		all := slices.Collect(want.Threads[j].Grammar.Expand(0))
		if len(stream) > len(all) || !slices.Equal(stream, all[:len(stream)]) {
			t.Fatalf("%s: thread %d is %v", name, i, stream)
		}
		symbols += uint64(len(stream))
	}
	return symbols
}

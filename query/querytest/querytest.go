// Package querytest makes snapshots for the tests of queries.
package querytest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/ppcompress"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/wpptest"
)

// A Fataler is a test, or one of many drawings of it.
type Fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Letters makes a snapshot of one thread a text: each letter is a path of one instruction in a
// routine of its own, each other character a mark.
func Letters(texts ...string) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/usr/bin/letters"}}}
	for i, text := range texts {
		g := sequitur.New()
		for _, c := range text {
			g.Append(Letter(s, c))
		}
		s.Threads = append(s.Threads,
			wpp.Thread{TID: 100 + i, Grammar: wpp.FromSequitur(g), Ended: true})
	}
	return s
}

func Letter(s *wpp.Snapshot, c rune) uint32 {
	for i := range s.Symbols {
		if sym := &s.Symbols[i]; sym.IsMark && sym.N == uint64(c) ||
			!sym.IsMark && s.Routines[sym.Routine].Name == string(c) {
			return uint32(i)
		}
	}
	if c < 'a' {
		s.Symbols = append(s.Symbols, wpp.Symbol{IsMark: true, Mark: ops.Mark(c % 5), N: uint64(c)})
		return uint32(len(s.Symbols) - 1)
	}
	entry := 0x1000 * uint64(c-'a'+1)
	s.Routines = append(s.Routines, wpp.Routine{
		Name: string(c), Entry: entry, Ranges: []wpp.Range{{Lo: entry, Hi: entry + 1}}, Paths: 1,
		Blocks: []wpp.Block{{Addr: entry, Lengths: []byte{1}}},
	})
	s.Symbols = append(s.Symbols,
		wpp.Symbol{Routine: len(s.Routines) - 1, End: ops.EndReturn, Blocks: []int{0}})
	return uint32(len(s.Symbols) - 1)
}

func Spell(s *wpp.Snapshot, symbols []uint32) string {
	var b strings.Builder
	for _, sym := range symbols {
		if s.Symbols[sym].IsMark {
			b.WriteByte(byte(s.Symbols[sym].N))
		} else {
			b.WriteString(s.RoutineOf(sym).Name)
		}
	}
	return b.String()
}

// Figure5 is the grammar that Larus gives by hand in figure 5: S -> AAA, A -> BC, B -> ab, C -> bc.
func Figure5(t testing.TB) *wpp.Snapshot {
	s := Letters("abc")
	rule := wpp.RuleSymbol
	g, err := wpp.NewGrammar([][]uint32{{rule(1), rule(1), rule(1)}, {rule(2), rule(3)}, {0, 1},
		{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	return s
}

// DrawSnapshot draws a snapshot of up to three threads: grammars of SEQUITUR, or any others.
func DrawSnapshot(t *rapid.T) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/usr/bin/letters"}}}
	alphabet := "abcdefg"[:rapid.IntRange(1, 7).Draw(t, "letters")] +
		"#!"[:rapid.IntRange(0, 2).Draw(t, "marks")]
	for _, c := range alphabet {
		sym := Letter(s, c)
		if n := rapid.IntRange(0, 4).Draw(t, "instructions"); !s.Symbols[sym].IsMark {
			s.RoutineOf(sym).Blocks[0].Lengths = slices.Repeat([]byte{1}, n+1)
			s.Symbols[sym].Skip = rapid.IntRange(0, 1).Draw(t, "skip") * (n / 2)
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "threads") {
		g := DrawSequitur(t, len(s.Symbols))
		if rapid.Bool().Draw(t, "any grammar") {
			g = DrawGrammar(t, len(s.Symbols))
		}
		s.Threads = append(s.Threads,
			wpp.Thread{TID: 100 + i, Grammar: g, Ended: rapid.Bool().Draw(t, "ended")})
	}
	return s
}

// DrawSequitur draws a stream that says a few phrases over and over.
func DrawSequitur(t *rapid.T, symbols int) *wpp.Grammar {
	phrases := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint32Range(0, uint32(symbols-1)), 1, 6), 1,
		4).Draw(t, "phrases")
	var stream []uint32
	for range rapid.IntRange(0, 40).Draw(t, "said") {
		stream = append(stream, rapid.SampledFrom(phrases).Draw(t, "phrase")...)
	}
	return wpptest.GrammarOf(stream...)
}

// DrawGrammar draws a grammar in which rules use later ones, as often as they like.
func DrawGrammar(t *rapid.T, symbols int) *wpp.Grammar {
	rules := rapid.IntRange(1, 6).Draw(t, "rules")
	bodies := make([][]uint32, rules)
	for r := range bodies {
		for range rapid.IntRange(1, 4).Draw(t, "length") {
			v := rapid.Uint32Range(0, uint32(symbols-1)).Draw(t, "terminal")
			if child := rapid.IntRange(r, rules-1).Draw(t, "child"); child > r {
				v = wpp.RuleSymbol(child)
			}
			bodies[r] = append(bodies[r], v)
		}
	}
	for r := 1; r < rules; r++ {
		user := rapid.IntRange(0, r-1).Draw(t, "user")
		bodies[user] = append(bodies[user], wpp.RuleSymbol(r))
	}
	g, err := wpp.NewGrammar(bodies)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func Streams(s *wpp.Snapshot) [][]uint32 {
	var all [][]uint32
	for i := range s.Threads {
		all = append(all, slices.Collect(s.Threads[i].Grammar.Expand(0)))
	}
	return all
}

// Compressor is a small program with all that a snapshot may hold: source lines, a stripped
// routine, names that mislead a terminal, every mark, and paths whose beginning or end is not
// known. Its main loop ran a hundred times.
func Compressor() *wpp.Snapshot {
	s := &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/usr/bin/squeeze"}, {Name: "/usr/lib/lib z.so"}},
		Files:  []string{"/src/squeeze/main.c", "/src/squeeze/match.c"},
		Routines: []wpp.Routine{
			{Name: "main", Symbol: "main", Entry: 0x1000,
				Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1030}, {Lo: 0x900, Hi: 0x908}}, Paths: 3,
				Blocks: []wpp.Block{
					{Addr: 0x1000, Lengths: []byte{1, 3, 5}, File: 0, Line: 10, Last: 12},
					{Addr: 0x1009, Lengths: []byte{2, 2}, File: 0, Line: 14, Last: 14},
					{Addr: 0x100d, Lengths: []byte{4, 1}, File: 0, Line: 20, Last: 21},
				}},
			{Name: "longest_match(std::vector<unsigned char, std::allocator<unsigned char> > " +
				"const&, unsigned int, unsigned int)", Symbol: "_Z13longest_match",
				Entry: 0x2000, Ranges: []wpp.Range{{Lo: 0x2000, Hi: 0x2010}}, Paths: 3,
				Blocks: []wpp.Block{
					{Addr: 0x2000, Lengths: []byte{1, 1, 1, 1}, File: 1, Line: 110, Last: 118},
					{Addr: 0x2004, Lengths: []byte{7}, File: 1, Line: 105, Last: 105},
					{Addr: 0x200b, Lengths: []byte{2}, File: 0, Line: 3, Last: 4}, // inlined
				}},
			{Image: 1, Entry: 0x3000, Ranges: []wpp.Range{{Lo: 0x3000, Hi: 0x3004}}, Paths: 1,
				Blocks: []wpp.Block{{Addr: 0x3000, Lengths: []byte{1, 3}}}},
			{Name: "odd\tname\x1b[2J", Entry: 0x4000, Ranges: []wpp.Range{{Lo: 0x4000, Hi: 0x4008}},
				LeftOut: "unresolved indirect jump at 4004"},
		},
		Symbols: []wpp.Symbol{
			{Routine: 0, Path: 0, Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0}},
			{Routine: 0, Path: 1, Start: ops.StartLoop, End: ops.EndCall, Blocks: []int{1}},
			{Routine: 1, Path: 2, Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{0}},
			{Routine: 1, Path: 1, Start: ops.StartLoop, End: ops.EndReturn, Blocks: []int{0, 2, 1}},
			{Routine: 2, Path: 0, Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0}},
			{Routine: 0, Path: 2, Start: ops.StartCall, End: ops.EndReturn, Blocks: []int{2}},
			{IsMark: true, Mark: ops.Gap, N: 7},
			{IsMark: true, Mark: ops.Resume},
			{Routine: 1, Path: 3, Start: ops.StartResume, End: ops.EndReturn, Blocks: []int{0, 1},
				Skip: 2},
			{Routine: 0, Path: 3, Start: ops.StartCall, End: ops.EndCut, Blocks: []int{2}, Cut: 1},
			{IsMark: true, Mark: ops.Cut},
			{IsMark: true, Mark: ops.Unwind, N: 1},
			{IsMark: true, Mark: ops.Handler},
			{Routine: 2, Path: 1, Start: ops.StartEntry, End: ops.EndCut},
			{Routine: 1, Path: 0, Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0}},
		},
		Figures: wpp.Figures{Command: []string{"squeeze", "-9", "input"}, PID: 4711, Tool: "v1.2.3",
			Kernel: "6.18.0\x1b", Start: time.Unix(1e9, 5), Hits: 700, HitsSingleStep: 3,
			HitTime: 530, ReportTime: 41, Events: 640, Lost: 7, Gaps: 1, Probes: 12,
			ProbesSingleStep: 1, SlowDown: 1.25},
	}
	loop := slices.Repeat([]uint32{1, 14, 2, 2, 3}, 100)
	s.Threads = []wpp.Thread{
		{TID: 4711, Name: "squeeze",
			Grammar: wpptest.GrammarOf(slices.Concat([]uint32{0}, loop, []uint32{12, 4, 5})...)},
		{TID: 4712, Name: "worker", Grammar: wpptest.GrammarOf(6, 7, 8, 7, 9, 10, 11, 13, 11),
			Lost: 7, Gaps: 1},
	}
	return s
}

// Named makes a snapshot of routines with these names. Each has a path 0 that enters it and a path
// 1 that does not, and each ran once.
func Named(names ...string) *wpp.Snapshot {
	s := Letters(strings.Repeat("a", 2*len(names)))
	s.Routines, s.Symbols = nil, nil
	var body []uint32
	for i, name := range names {
		s.Routines = append(s.Routines, wpp.Routine{Name: name, Entry: uint64(i), Paths: 2})
		body = append(body, uint32(2*i), uint32(2*i+1))
		s.Symbols = append(s.Symbols, wpp.Symbol{Routine: i, End: ops.EndCall},
			wpp.Symbol{Routine: i, Path: 1, Start: ops.StartCall, End: ops.EndReturn})
	}
	g, err := wpp.NewGrammar([][]uint32{body})
	if err != nil {
		panic(err)
	}
	s.Threads[0].Grammar = g
	return s
}

// BuildOf gives a snapshot a build id.
func BuildOf(s *wpp.Snapshot, id string) *wpp.Snapshot {
	s.Images[0].BuildID = []byte(id)
	return s
}

var ErrFull = errors.New("no space left")

// A LimitedWriter fails after so many bytes.
type LimitedWriter int

func (w *LimitedWriter) Write(p []byte) (int, error) {
	if n := int(*w); len(p) > n {
		*w = 0
		return n, ErrFull
	}
	*w -= LimitedWriter(len(p))
	return len(p), nil
}

// Doubling is a grammar of a few rules that derives 2^60 paths, and then its mark.
func Doubling(t testing.TB) *wpp.Snapshot {
	s := Letters("a#")
	s.Threads[0].Grammar = Repeated(t, 59, []uint32{wpp.RuleSymbol(1), 1}, []uint32{0, 0})
	return s
}

// Repeated is a grammar with a start rule whose rule 1 derives a body, again and again: as often as
// 2 to the power of a number of doublings.
func Repeated(t testing.TB, doublings int, start, body []uint32) *wpp.Grammar {
	bodies := [][]uint32{start}
	for r := range doublings {
		bodies = append(bodies, slices.Repeat([]uint32{wpp.RuleSymbol(r + 2)}, 2))
	}
	g, err := wpp.NewGrammar(append(bodies, body))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// InlinedCompressor is Compressor with inlined calls: two in each other in a block of main, one of
// which nothing is known in the middle of longest_match, and one with a name that misleads a
// terminal.
func InlinedCompressor() *wpp.Snapshot {
	s := Compressor()
	s.Files = append(s.Files, "/usr/include/c++/12/bits/stl_vector.h")
	s.Calls = []wpp.Call{
		{Name: "next_block", File: 0, Line: 15},
		{Name: "std::vector<unsigned char, std::allocator<unsigned char> >::push_back", File: 0,
			Line: 30, In: 1},
		{},
		{Name: "odd\x1b[2J", File: 1, Line: 112},
	}
	main, match := s.Routines[0].Blocks, s.Routines[1].Blocks
	main[1].Spans = []wpp.Span{{From: 0, To: 1, Line: 14, Last: 14},
		{From: 1, To: 2, Call: 2, File: 2, Line: 1280, Last: 1282}}
	match[0].Spans = []wpp.Span{{From: 0, To: 2, Call: 4, File: 1, Line: 40, Last: 41},
		{From: 2, To: 3, Call: 3}, {From: 3, To: 4, File: 1, Line: 118, Last: 118}}
	return s
}

func BareSymbols(t testing.TB, text string) *wpp.Snapshot {
	t.Helper()
	s, err := ppcompress.Symbols(strings.NewReader(text), "numbers", spill.New(nil, spill.Limits{}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TracedLoop is the snapshot of a program whose loop takes path 1 and path 2 in turns.
func TracedLoop() *wpp.Snapshot {
	s := &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/usr/bin/spin"}},
		Files:  []string{"/src/spin.c"},
		Routines: []wpp.Routine{{
			Name: "spin", Entry: 0x1000, Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1010}}, Paths: 3,
			Blocks: []wpp.Block{
				{Addr: 0x1000, Lengths: []byte{4, 4}, Line: 7, Last: 8},
				{Addr: 0x1008, Lengths: []byte{5, 2, 1}, Line: 9, Last: 11},
			},
		}},
		Symbols: []wpp.Symbol{
			{Path: 0, Start: ops.StartEntry, End: ops.EndLoop, Blocks: []int{0}},
			{Path: 1, Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{0}},
			{Path: 2, Start: ops.StartLoop, End: ops.EndLoop, Blocks: []int{0, 1}},
		},
		Figures: wpp.Figures{Command: []string{"spin", "2"}, PID: 4711},
	}
	g := sequitur.New()
	for _, sym := range []uint32{0, 1, 2, 1, 2} {
		g.Append(sym)
	}
	s.Threads = []wpp.Thread{{TID: 4711, Name: "spin", Grammar: wpp.FromSequitur(g)}}
	return s
}

// Counted makes the path profile of what ran in a snapshot.
func Counted(s *wpp.Snapshot) *wpp.Snapshot {
	counts := pathprofile.Counts{Of: make([]uint64, len(s.Symbols)), Runs: 1,
		Threads: uint64(len(s.Threads))}
	for _, stream := range Streams(s) {
		for _, sym := range stream {
			counts.Of[sym]++
		}
	}
	profile := *s
	profile.Threads, profile.Sections = nil, []*wpp.Section{counts.Section()}
	return &profile
}

package wpp

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
)

// difference compares snapshots; nil and empty slices are equal, grammars are what their bodies
// are.
func difference(want, got *Snapshot) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.AllowUnexported(Grammar{}))
}

func grammarOf(stream ...uint32) *Grammar {
	g := sequitur.New()
	g.AppendAll(stream)
	return FromSequitur(g)
}

// smallSnapshot has one of everything: it is the files testdata/version*.wpp.
func smallSnapshot() *Snapshot {
	return &Snapshot{
		Images: []Image{{Name: "/usr/bin/demo", BuildID: []byte{0xde, 0xad}}, {Name: "/lib/libdemo.so"}},
		Files:  []string{"demo.c", "lib.h"},
		Routines: []Routine{
			{
				Name: "demo::main()", Symbol: "_ZN4demo4mainEv", Entry: 0x401000, Paths: 5,
				Ranges: []Range{{0x401000, 0x401020}, {0x400100, 0x400104}},
				Blocks: []Block{
					{Addr: 0x401000, Lengths: []byte{1, 3, 5}, Line: 10, Last: 12},
					{Addr: 0x401009, Lengths: []byte{2}, File: 1, Line: 3, Last: 3},
					{Addr: 0x400100, Lengths: []byte{1, 1, 2}},
				},
			},
			{Name: "fn_402000", Image: 1, Entry: 0x402000, Paths: 1, Ranges: []Range{{0x402000, 0x402001}}, LeftOut: "cfa is an expression"},
		},
		Symbols: []Symbol{
			{Path: 0, Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0, 1}},
			{IsMark: true, Mark: ops.Gap, N: 17},
			{Path: 6, Start: ops.StartResume, End: ops.EndCut, Blocks: []int{0, 1, 2}, Skip: 2, Cut: 1},
			{Path: 7, Start: ops.StartEntry, End: ops.EndCut},
			{IsMark: true, Mark: ops.Resume},
		},
		Threads: []Thread{
			{TID: 4711, Name: "demo", Grammar: grammarOf(0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4)},
			{TID: 4712, Name: "w\xff", Grammar: grammarOf(), Lost: 17, Gaps: 1},
		},
		Figures: Figures{
			Tool: "1.0", Command: []string{"demo", "", "-x"}, PID: 4711, Kernel: "6.18.5",
			Start: time.Unix(1700000000, 5).UTC(), Duration: 3 * time.Second,
			Hits: 1, HitsSingleStep: 2, Words: 3, Lost: 17, Gaps: 1, Probes: 4, ProbesSingleStep: 5, SlowDown: 1.5, Anomalies: 6,
		},
	}
}

// anySnapshot draws a snapshot that Check accepts.
func anySnapshot(t *rapid.T) *Snapshot {
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "text")) })
	s := &Snapshot{
		Images: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Image {
			return Image{Name: text.Draw(t, "image"), BuildID: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "build id")}
		}), 1, 3).Draw(t, "images"),
		Files: rapid.SliceOfN(text, 1, 3).Draw(t, "files"),
		Figures: Figures{
			Command: rapid.SliceOfN(text, 0, 3).Draw(t, "command"), PID: int(rapid.Int32().Draw(t, "pid")),
			Start: time.Unix(0, rapid.Int64Min(1).Draw(t, "start")).UTC(), Duration: time.Duration(rapid.Int64().Draw(t, "duration")), Ended: text.Draw(t, "ended"),
			Hits: rapid.Uint64().Draw(t, "hits"), HitTime: time.Duration(rapid.Int64().Draw(t, "hit")), ReportTime: time.Duration(rapid.Int64().Draw(t, "report")), CPUTime: time.Duration(rapid.Int64().Draw(t, "cpu")),
			SlowDown: rapid.Float64().Draw(t, "slow-down"),
			Windows:  rapid.Uint64().Draw(t, "windows"), Sampled: rapid.Float64().Draw(t, "sampled"), SampledMost: rapid.Float64().Draw(t, "sampled most"), SlowDownVague: rapid.Bool().Draw(t, "vague"), SlowDownMost: rapid.Float64().Draw(t, "slow-down at most"),
			SlowDownLikely: rapid.Float64().Draw(t, "likely slow-down"), WaitStatus: rapid.Ptr(rapid.Uint32(), true).Draw(t, "wait status"),
		},
	}
	s.Calls = anyCalls(t, s, text)
	s.Routines = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Routine { return anyRoutine(t, s, text) }), 1, 4).Draw(t, "routines")
	s.Symbols = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Symbol { return anySymbol(t, s.Routines) }), 1, 6).Draw(t, "symbols")
	terminal := rapid.Uint32Range(0, uint32(len(s.Symbols)-1))
	s.Threads = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Thread {
		return Thread{
			TID: int(rapid.Int32().Draw(t, "tid")), Name: text.Draw(t, "name"), Lost: rapid.Uint64().Draw(t, "lost"), Ended: rapid.Bool().Draw(t, "ended"),
			Grammar: grammarOf(rapid.SliceOfN(terminal, 0, 60).Draw(t, "stream")...),
		}
	}), 0, 3).Draw(t, "threads")
	return s
}

func anyRoutine(t *rapid.T, s *Snapshot, text *rapid.Generator[string]) Routine {
	const high = 1<<64 - 1<<20 // leaves room for a block
	return Routine{
		Name: text.Draw(t, "name"), Symbol: text.Draw(t, "symbol"), LeftOut: text.Draw(t, "left out"),
		Image: rapid.IntRange(0, len(s.Images)-1).Draw(t, "image"),
		Entry: rapid.Uint64().Draw(t, "entry"), Paths: rapid.Uint64().Draw(t, "paths"),
		Ranges: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Range {
			lo := rapid.Uint64Range(0, high).Draw(t, "lo")
			return Range{lo, rapid.Uint64Min(lo+1).Draw(t, "hi")}
		}), 0, 3).Draw(t, "ranges"),
		Blocks: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Block {
			b := Block{
				Addr:    rapid.Uint64Range(0, high).Draw(t, "addr"),
				Lengths: rapid.SliceOfN(rapid.ByteRange(1, maxInstruction), 1, 5).Draw(t, "lengths"),
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

func anySymbol(t *rapid.T, routines []Routine) Symbol {
	if rapid.Bool().Draw(t, "mark") {
		return Symbol{IsMark: true, Mark: ops.Mark(rapid.IntRange(0, int(ops.Handler)).Draw(t, "kind")), N: rapid.Uint64().Draw(t, "n")}
	}
	p := Symbol{
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

func TestPathOfSymbol(t *testing.T) {
	s := smallSnapshot()
	for _, c := range []struct {
		sym       uint32
		addrs     []uint64
		locations []Location
	}{
		{0, []uint64{0x401000, 0x401001, 0x401004, 0x401009}, []Location{{"demo.c", 10}, {"demo.c", 12}, {"lib.h", 3}}},
		{1, nil, nil},
		{2, []uint64{0x401004, 0x401009, 0x400100, 0x400101}, []Location{{"demo.c", 10}, {"demo.c", 12}, {"lib.h", 3}}},
		{3, nil, nil},
	} {
		var addrs []uint64
		for addr := range s.Instructions(c.sym) {
			addrs = append(addrs, addr)
		}
		if d := cmp.Diff(c.addrs, addrs); d != "" {
			t.Errorf("instructions of symbol %d: %s", c.sym, d)
		}
		if cost := s.SymbolCost(c.sym); cost != uint64(len(c.addrs)) {
			t.Errorf("cost of symbol %d: %d, want %d", c.sym, cost, len(c.addrs))
		}
		var locations []Location
		for l := range s.Locations(c.sym) {
			locations = append(locations, l)
		}
		if d := cmp.Diff(c.locations, locations); d != "" {
			t.Errorf("locations of symbol %d: %s", c.sym, d)
		}
	}
	if s.RoutineOf(1) != nil || s.ImageOf(1) != nil || s.RoutineOf(2) != &s.Routines[0] || s.ImageOf(2).Base() != "demo" {
		t.Error("routines or images of symbols are wrong")
	}
}

// An Instructions iterator that stops early must stop in every loop that it is made of.
func TestInstructionsStopEarly(t *testing.T) {
	s := smallSnapshot()
	for stop := 1; stop <= 4; stop++ {
		n := 0
		for range s.Instructions(0) {
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("%d instructions, want %d", n, stop)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, spoil := range map[string]func(s *Snapshot){
		"image of a routine":        func(s *Snapshot) { s.Routines[1].Image = 2 },
		"negative image":            func(s *Snapshot) { s.Routines[1].Image = -1 },
		"empty range":               func(s *Snapshot) { s.Routines[0].Ranges[0].Hi = 0x401000 },
		"empty block":               func(s *Snapshot) { s.Routines[0].Blocks[0].Lengths = nil },
		"instruction of 0 bytes":    func(s *Snapshot) { s.Routines[0].Blocks[0].Lengths[1] = 0 },
		"instruction of 16 bytes":   func(s *Snapshot) { s.Routines[0].Blocks[0].Lengths[1] = 16 },
		"block past the end":        func(s *Snapshot) { s.Routines[0].Blocks[0].Addr = 1<<64 - 1 },
		"file of a block":           func(s *Snapshot) { s.Routines[0].Blocks[1].File = 2 },
		"lines the wrong way":       func(s *Snapshot) { s.Routines[0].Blocks[0].Last = 9 },
		"last line but no first":    func(s *Snapshot) { s.Routines[0].Blocks[0].Line = 0 },
		"line too large":            func(s *Snapshot) { s.Routines[0].Blocks[0].Last = math.MaxInt32; s.Routines[0].Blocks[0].Last++ },
		"routine of a path":         func(s *Snapshot) { s.Symbols[0].Routine = 2 },
		"start of a path":           func(s *Snapshot) { s.Symbols[0].Start = 6 },
		"end of a path":             func(s *Snapshot) { s.Symbols[0].End = 7 },
		"block of a path":           func(s *Snapshot) { s.Symbols[0].Blocks[1] = 3 },
		"skips more than the block": func(s *Snapshot) { s.Symbols[0].Skip = 4 },
		"cuts more than the block":  func(s *Snapshot) { s.Symbols[0].Cut = 2 },
		"skips and cuts more":       func(s *Snapshot) { s.Symbols[0] = Symbol{Blocks: []int{0}, Skip: 2, Cut: 2} },
		"negative skip":             func(s *Snapshot) { s.Symbols[0].Skip = -1 },
		"negative cut":              func(s *Snapshot) { s.Symbols[0].Cut = -1 },
		"cuts a path of no blocks":  func(s *Snapshot) { s.Symbols[3].Cut = 1 },
		"unknown mark":              func(s *Snapshot) { s.Symbols[1].Mark = 5 },
		"thread without a grammar":  func(s *Snapshot) { s.Threads[0].Grammar = nil },
		"terminal of a grammar":     func(s *Snapshot) { s.Symbols = s.Symbols[:4] },
	} {
		s := smallSnapshot()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(s)
		if s.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

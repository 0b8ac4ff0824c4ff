package profile

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
)

// drawLines draws the lines and calls of instructions, and what ran.
func drawLines(t *rapid.T) *wpp.Snapshot {
	s := querytest.InlinedCompressor()
	s.EachLine = true
	for i := range s.Routines {
		for b := range s.Routines[i].Blocks {
			block := &s.Routines[i].Blocks[b]
			block.Spans = nil
			for at := 0; at < len(block.Lengths); {
				x := wpp.Span{From: at, To: rapid.IntRange(at+1, len(block.Lengths)).Draw(t, "to"),
					Call: rapid.IntRange(0, len(s.Calls)).Draw(t, "call"),
					Line: rapid.IntRange(0, 3).Draw(t, "line")}
				if x.Last = x.Line; x.Line > 0 {
					x.File = rapid.IntRange(0, 1).Draw(t, "file")
				}
				block.Spans = append(block.Spans, x)
				at = x.To
			}
		}
	}
	s.Threads = nil
	for i := range rapid.IntRange(1, 2).Draw(t, "threads") {
		s.Threads = append(s.Threads,
			wpp.Thread{TID: i, Grammar: querytest.DrawGrammar(t, len(s.Symbols))})
	}
	return s
}

// TestLinesAreThoseOfTheExpansion: how often instructions and lines ran is what the expansion says,
// instruction by instruction.
func TestLinesAreThoseOfTheExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawLines(t)
		ran := map[*wpp.Block][]uint64{}
		for _, stream := range querytest.Streams(s) {
			for _, sym := range stream {
				for piece := range s.Pieces(sym) {
					counts := ran[piece.Block]
					if counts == nil {
						counts = make([]uint64, len(piece.Block.Lengths))
						ran[piece.Block] = counts
					}
					for k := piece.From; k < piece.To; k++ {
						counts[k]++
					}
				}
			}
		}
		want := map[int]uint64{}
		for i := range s.Routines {
			most := map[[2]int]uint64{} // line, call
			for b := range s.Routines[i].Blocks {
				block := &s.Routines[i].Blocks[b]
				for _, x := range block.Spans {
					for k := x.From; k < x.To && x.Line > 0 && x.File == 1; k++ {
						n := uint64(0)
						if ran[block] != nil {
							n = ran[block][k]
						}
						most[[2]int{x.Line, x.Call}] = max(most[[2]int{x.Line, x.Call}], n)
					}
				}
			}
			for at, n := range most {
				want[at[0]] += n
			}
		}
		r, err := Lines(s, "match.c")
		if err != nil {
			t.Fatal(err)
		}
		got := map[int]uint64{}
		for _, l := range r.Lines {
			got[l.Line] = l.Count
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("lines: expansion -, grammar +:\n%s", diff)
		}
		list, err := Listings(s, "main")
		if err != nil {
			t.Fatal(err)
		}
		addr := map[uint64]uint64{}
		for b := range s.Routines[0].Blocks {
			block := &s.Routines[0].Blocks[b]
			at := block.Addr
			for k, n := range block.Lengths {
				if addr[at] = 0; ran[block] != nil {
					addr[at] = ran[block][k]
				}
				at += uint64(n)
			}
		}
		listed := map[uint64]uint64{}
		for _, q := range list[0].Instructions {
			listed[q.Addr] = q.Count
		}
		if diff := gocmp.Diff(addr, listed); diff != "" {
			t.Fatalf("instructions: expansion -, grammar +:\n%s", diff)
		}
	})
}

// TestLinesOfOlderFiles: where a file has only the first and the last line of a block, no line
// between them gets a count.
func TestLinesOfOlderFiles(t *testing.T) {
	r, err := Lines(querytest.Compressor(), "main.c")
	if err != nil {
		t.Fatal(err)
	}
	// 3 is in longest_match
	want := []LineCount{{3, 100}, {10, 1}, {12, 1}, {14, 100}, {20, 2}, {21, 1}}
	if diff := gocmp.Diff(want, r.Lines); diff != "" || r.File != "/src/squeeze/main.c" {
		t.Errorf("%s: %s", r.File, diff)
	}
}

// TestSourceFile: a file is found by the end of its path; what may be several, or is none, is said.
func TestSourceFile(t *testing.T) {
	s := &wpp.Snapshot{Files: []string{"/a/src/util.c", "/a/lib/util.c", "/a/src/./main.c",
		"/a/src/main.c", "odd\x1b.c"}}
	for name, want := range map[string]string{
		"main.c": "/a/src/main.c", "src/util.c": "/a/src/util.c",
		"/elsewhere/lib/util.c": "/a/lib/util.c", "/a/src/main.c": "/a/src/main.c",
		"./main.c": "/a/src/main.c",
	} {
		if got, err := SourceFile(s, name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"util.c": "it may be one of /a/lib/util.c, /a/src/util.c: give more of its path",
		"mian.c": "no code of it ran, but of main.c",
		"nosuch": "no code of it ran, but of main.c, odd?.c, util.c",
		"src":    "no code of it ran, but of main.c, odd?.c, util.c",
	} {
		if got, err := SourceFile(s, name); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, want)
		}
	}
	if _, err := SourceFile(&wpp.Snapshot{}, "x.c"); err == nil ||
		!strings.HasPrefix(err.Error(), "the snapshot has no source lines: build the program with -g") {
		t.Error(err)
	}
}

// TestListingsOfWhatDidNotRun: why a snapshot has no instructions of a routine is said.
func TestListingsOfWhatDidNotRun(t *testing.T) {
	s := querytest.Compressor()
	s.Routines = append(s.Routines, wpp.Routine{Name: "idle", Entry: 0x5000})
	for name, want := range map[string]string{
		"odd...": "instructions of odd...: it was not traced (unresolved indirect jump at 4004)",
		"idle": "instructions of idle: it did not run, and the snapshot has the instructions of " +
			"routines that ran",
		"mian": "instructions of mian: no routine mian, but main",
	} {
		if _, err := Listings(s, name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	list, err := Listings(s, "main", 4712)
	if err != nil || list[0].Calls != 0 || list[0].Instructions[5].Count != 1 {
		t.Errorf("thread 4712: %+v, %v", list, err)
	}
	s.Threads[0].Grammar = wpptest.GrammarOf(0, 0)
	if list, err = Listings(s, "main", 4711); err != nil || list[0].Calls != 2 {
		t.Errorf("thread 4711: %+v, %v", list, err)
	}
}

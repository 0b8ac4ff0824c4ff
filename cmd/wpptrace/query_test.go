package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
)

// makeSnapshot is the script command "snapshot FILE BUILD-ID THREAD...": it writes a snapshot of
// threads 1, 2 ... A thread is a text of ROUTINE#N, paths of N+1 instructions of which #0 enters
// the routine, of "gap", of "(TEXT)N", the text N times in a row, and, where its end is not known,
// of "..." behind all that. A FILE that begins with "windows" was traced in windows, nobody knows
// how much of it.
func makeSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: snapshot FILE BUILD-ID THREAD...")
	}
	s := &wpp.Snapshot{
		Images:  []wpp.Image{{Name: "/usr/bin/letters", BuildID: []byte(args[1])}},
		Figures: wpp.Figures{Command: []string{"letters"}, PID: 1},
	}
	if strings.HasPrefix(args[0], "windows") {
		s.Figures.Windows, s.Figures.Sampled, s.Figures.SampledMost = 3, 0.01, 0.05
	}
	for i, text := range args[2:] {
		g := sequitur.New()
		text, runsOn := strings.CutSuffix(text, "...")
		for _, word := range strings.Fields(unfold(ts, text)) {
			g.Append(symbolOf(ts, s, word))
		}
		s.Threads = append(s.Threads,
			wpp.Thread{TID: i + 1, Name: "letters", Grammar: wpp.FromSequitur(g), Ended: !runsOn})
	}
	ts.Check(store.WriteFile(ts.MkAbs(args[0]), s))
}

// unfold repeats the innermost parentheses until none are left.
func unfold(ts *testscript.TestScript, text string) string {
	for {
		head, tail, ok := strings.Cut(text, ")")
		if !ok {
			return text
		}
		open := strings.LastIndex(head, "(")
		digits := len(tail) - len(strings.TrimLeft(tail, "0123456789"))
		n, err := strconv.Atoi(tail[:digits])
		ts.Check(err)
		text = head[:open] + strings.Repeat(head[open+1:]+" ", n) + tail[digits:]
	}
}

func symbolOf(ts *testscript.TestScript, s *wpp.Snapshot, word string) uint32 {
	want := wpp.Symbol{IsMark: true, Mark: ops.Gap, N: 1}
	if word != "gap" {
		name, number, _ := strings.Cut(word, "#")
		path, err := strconv.Atoi(number)
		ts.Check(err)
		want = wpp.Symbol{Routine: routineOf(s, name), Path: uint64(path), Start: ops.StartLoop,
			End: ops.EndLoop, Blocks: []int{path}}
		if path == 0 {
			want.Start = ops.StartEntry
		}
	}
	for sym, p := range s.Symbols {
		if p.IsMark == want.IsMark && p.Routine == want.Routine && p.Path == want.Path {
			return uint32(sym)
		}
	}
	s.Symbols = append(s.Symbols, want)
	return uint32(len(s.Symbols) - 1)
}

// routineOf finds a routine of eight blocks, or adds one.
func routineOf(s *wpp.Snapshot, name string) int {
	if i := slices.IndexFunc(s.Routines,
		func(r wpp.Routine) bool { return r.Name == name }); i >= 0 {
		return i
	}
	entry := 0x1000 * uint64(len(s.Routines)+1)
	r := wpp.Routine{Name: name, Symbol: name, Entry: entry,
		Ranges: []wpp.Range{{Lo: entry, Hi: entry + 64}}, Paths: 8}
	for i := range 8 {
		r.Blocks = append(r.Blocks,
			wpp.Block{Addr: entry + 8*uint64(i), Lengths: slices.Repeat([]byte{1}, i+1)})
	}
	s.Routines = append(s.Routines, r)
	return len(s.Routines) - 1
}

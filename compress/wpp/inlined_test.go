package wpp

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// inlinedSnapshot is smallSnapshot with inlined calls: it is the file
// testdata/version3-inlined.wpp.
func inlinedSnapshot() *Snapshot {
	s := smallSnapshot()
	s.Calls = []Call{{Name: "demo::step", Line: 11}, {Name: "std::min<int>", File: 1, Line: 30, In: 1}, {Line: 0}}
	s.Routines[0].Blocks[0].Spans = []Span{{From: 0, To: 1, Line: 10, Last: 10}, {From: 1, To: 3, Call: 2, File: 1, Line: 7, Last: 9}}
	s.Routines[0].Blocks[1].Spans = []Span{{From: 0, To: 1, Call: 3}}
	return s
}

func anyCalls(t *rapid.T, s *Snapshot, text *rapid.Generator[string]) (calls []Call) {
	for i := range rapid.IntRange(0, 4).Draw(t, "calls") {
		c := Call{Name: text.Draw(t, "callee"), In: rapid.IntRange(0, i).Draw(t, "in")}
		if rapid.Bool().Draw(t, "place known") {
			c.File, c.Line = rapid.IntRange(0, len(s.Files)-1).Draw(t, "file"), rapid.IntRange(1, 1<<31-1).Draw(t, "line")
		}
		calls = append(calls, c)
	}
	return calls
}

// anySpans draws spans of a block of n instructions.
func anySpans(t *rapid.T, s *Snapshot, n int) (spans []Span) {
	for at := 0; at < n; {
		x := Span{From: at, To: rapid.IntRange(at+1, n).Draw(t, "to"), Call: rapid.IntRange(0, len(s.Calls)).Draw(t, "call")}
		if rapid.Bool().Draw(t, "line known") {
			x.File, x.Line = rapid.IntRange(0, len(s.Files)-1).Draw(t, "file"), rapid.IntRange(1, 1<<31-1).Draw(t, "line")
			x.Last = rapid.IntRange(x.Line, 1<<31-1).Draw(t, "last")
		}
		spans = append(spans, x)
		at = x.To
	}
	return spans
}

// Files with inlined calls stay readable for ever, as those without.
func TestReadsInlinedCalls(t *testing.T) {
	path := filepath.Join("testdata", "version3-inlined.wpp")
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(inlinedSnapshot(), got); d != "" {
		t.Error(d)
	}
}

// A snapshot of a program in which nothing is inlined takes no more than it did before that was
// kept.
func TestNothingInlinedTakesNothing(t *testing.T) {
	m := encodeProgram(smallSnapshot())
	if m.BlockSpans != nil || m.CallName != nil {
		t.Errorf("%d and %d elements", len(m.BlockSpans), len(m.CallName))
	}
	old, err := os.ReadFile(versionFile(version))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(encoded(t, smallSnapshot())); n != len(old) {
		t.Errorf("%d bytes, not %d", n, len(old))
	}
}

// What readers of inlined calls rely on is checked.
func TestInlinedCallsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *Snapshot)
		want   string
	}{
		"in itself":          {func(s *Snapshot) { s.Calls[0].In = 1 }, "call 1: is in call 1"},
		"in a later one":     {func(s *Snapshot) { s.Calls[1].In = 3 }, "call 2: is in call 3"},
		"in none":            {func(s *Snapshot) { s.Calls[1].In = -1 }, "call 2: is in call -1"},
		"no file":            {func(s *Snapshot) { s.Calls[1].File = 2 }, "call 2: file 2 of 2"},
		"no line":            {func(s *Snapshot) { s.Calls[1].Line = -1 }, "call 2: lines -1 to -1"},
		"no call":            {func(s *Snapshot) { spansOf(s)[1].Call = 4 }, "routine 0: block 0: call 4 of 4"},
		"no file of a span":  {func(s *Snapshot) { spansOf(s)[1].File = -1 }, "routine 0: block 0: file -1 of 2"},
		"lines of a span":    {func(s *Snapshot) { spansOf(s)[1].Last = 6 }, "routine 0: block 0: lines 7 to 6"},
		"not from the start": {func(s *Snapshot) { spansOf(s)[0].From = 1 }, "routine 0: block 0: span from 1 to 1 stands at 0"},
		"empty":              {func(s *Snapshot) { spansOf(s)[0].To = 0 }, "routine 0: block 0: span from 0 to 0 stands at 0"},
		"with a hole":        {func(s *Snapshot) { spansOf(s)[1].From = 2 }, "routine 0: block 0: span from 2 to 3 stands at 1"},
		"not to the end":     {func(s *Snapshot) { spansOf(s)[1].To = 2 }, "routine 0: block 0: spans do not have as many instructions"},
		"beyond the end":     {func(s *Snapshot) { spansOf(s)[1].To = 4 }, "routine 0: block 0: spans do not have as many instructions"},
		"too many in each other": {func(s *Snapshot) {
			for i := range maxStack {
				s.Calls = append(s.Calls, Call{In: i + 3})
			}
		}, "call 1027: is in more than 1024 others"},
	} {
		s := inlinedSnapshot()
		c.change(s)
		if err := s.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func spansOf(s *Snapshot) []Span { return s.Routines[0].Blocks[0].Spans }

// Columns that disagree are refused.
func TestInlinedColumns(t *testing.T) {
	for name, change := range map[string]func(m *ProgramSection){
		"files of calls":    func(m *ProgramSection) { m.CallFile = m.CallFile[1:] },
		"lines of calls":    func(m *ProgramSection) { m.CallLine = m.CallLine[1:] },
		"what calls are in": func(m *ProgramSection) { m.CallIn = m.CallIn[1:] },
		"blocks":            func(m *ProgramSection) { m.BlockSpans = m.BlockSpans[1:] },
		"no blocks":         func(m *ProgramSection) { m.BlockSpans = nil },
		"fewer spans":       func(m *ProgramSection) { m.BlockSpans[0] = 1 },
		"more spans":        func(m *ProgramSection) { m.BlockSpans[2] = 1 << 31 },
		"instructions":      func(m *ProgramSection) { m.SpanInstructions = m.SpanInstructions[1:] },
		"calls":             func(m *ProgramSection) { m.SpanCall = m.SpanCall[1:] },
		"files":             func(m *ProgramSection) { m.SpanFile = m.SpanFile[1:] },
		"first lines":       func(m *ProgramSection) { m.SpanLine = m.SpanLine[1:] },
		"last lines":        func(m *ProgramSection) { m.SpanLast = m.SpanLast[1:] },
		"names of calls":    func(m *ProgramSection) { m.CallName[0] = 1000 },
	} {
		m := encodeProgram(inlinedSnapshot())
		change(m)
		if err := decodeProgram(&Snapshot{}, m); err == nil || !strings.Contains(err.Error(), "columns disagree") && name != "names of calls" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSpansOfPieces(t *testing.T) {
	s := inlinedSnapshot()
	for sym, want := range map[uint32][]Span{
		0: {{From: 0, To: 1, Line: 10, Last: 10}, {From: 1, To: 3, Call: 2, File: 1, Line: 7, Last: 9}, {From: 0, To: 1, Call: 3}},
		2: {{From: 2, To: 3, Call: 2, File: 1, Line: 7, Last: 9}, {From: 0, To: 1, Call: 3}, {From: 0, To: 2}}, // whose first two instructions did not run, nor its last
	} {
		var got []Span
		for piece := range s.Pieces(sym) {
			got = append(got, slices.Collect(piece.Spans())...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("symbol %d: %+v, want %+v", sym, got, want)
		}
	}
	for call, want := range [][]string{nil, {"demo::step"}, {"std::min<int>", "demo::step"}, {""}} {
		var got []string
		for c := range s.Stack(call) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("call %d: %q, want %q", call, got, want)
		}
	}
	for range s.Stack(2) {
		break
	}
	for piece := range s.Pieces(0) {
		for range piece.Spans() {
			break
		}
	}
}

func TestRoundTripOfInlinedCalls(t *testing.T) {
	got, err := Read(bytes.NewReader(encoded(t, inlinedSnapshot())))
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(inlinedSnapshot(), got); d != "" {
		t.Error(d)
	}
}

func ExampleSnapshot_Stack() {
	s := inlinedSnapshot()
	for piece := range s.Pieces(0) {
		for span := range piece.Spans() {
			fmt.Print(span.To-span.From, " instructions")
			for call := range s.Stack(span.Call) {
				fmt.Printf(", inlined from %q", call.Name)
			}
			fmt.Println()
		}
	}
	// Output:
	// 1 instructions
	// 2 instructions, inlined from "std::min<int>", inlined from "demo::step"
	// 1 instructions, inlined from ""
}

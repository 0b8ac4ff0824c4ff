package report

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
)

// Tables name what is inlined behind the lines of the routine itself, or of its calls; JSON has
// each call.
func TestInlinedGolden(t *testing.T) {
	s := querytest.InlinedCompressor()
	for name, write := range map[string]func(io.Writer, *wpp.Snapshot,
		*query.HotReport) error{"hot-inlined.txt": WriteHot, "hot-inlined.json": WriteHotJSON} {
		r, err := query.Hot(s,
			query.HotQuery{MinLength: 2, MaxLength: 100, MinCost: 1500, Metric: query.Instructions})
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, name, func(w io.Writer) error { return write(w, s, r) })
	}
	checkGolden(t, "dump-inlined.txt",
		func(w io.Writer) error { return Dump(w, s, Grammar, Whole()) })
}

// A place with the names of what is inlined there is as wide as it may be, and no wider.
func TestWhereIn(t *testing.T) {
	l := labelOf(querytest.InlinedCompressor(), "main", 1)
	const whole = "main.c:14-15 (next_block, std::vector<...>::push_back)"
	if got := l.Where(); got != whole {
		t.Errorf("%q, want %q", got, whole)
	}
	for width, want := range map[int]string{len(whole): whole,
		len(whole) - 1: "main.c:14-15 (next_block, std::vector<...>::push_...)",
		19:             "main.c:14-15 (n...)", 18: "main.c:14-15", 12: "main.c:14-15",
		8: "...14-15"} {
		if got := l.whereIn(width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
	for width := 4; width < 80; width++ {
		if got := l.whereIn(width); utf8.RuneCountInString(got) > width {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}

// Of a block with inlined code, each part has its place and the calls around it.
func TestWritePathWithInlinedCalls(t *testing.T) {
	s := querytest.InlinedCompressor()
	for name, want := range map[string][]string{
		"main#1": {
			"1009                   1  /src/squeeze/main.c:14",
			"100b                   1  /usr/include/c++/12/bits/stl_vector.h:1280-1282 in " +
				"std::vector<unsigned char, std::allocator<unsigned char> >::push_back",
			"                          inlined at /src/squeeze/main.c:30 in next_block",
			"                          inlined at /src/squeeze/main.c:15 in main",
		},
		"longest_match...int)#2": {
			"2000-2001              2  /src/squeeze/match.c:40-41 in odd?[2J",
			"                          inlined at /src/squeeze/match.c:112 in " +
				s.Routines[1].Name,
			"2002                   1  in ?",
			"                          inlined in " + s.Routines[1].Name,
			"2003                   1  /src/squeeze/match.c:118",
		},
		"longest_match...int)#3": { // which begins in the middle of it
			"2002                   1  in ?",
			"                          inlined in " + s.Routines[1].Name,
			"2003                   1  /src/squeeze/match.c:118",
			"2004                   1  /src/squeeze/match.c:105",
		},
	} {
		var out bytes.Buffer
		if err := WritePath(&out, s, name); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if got := strings.Join(lines[2:], "\n"); got != "  "+strings.Join(want, "\n  ") {
			t.Errorf("%s:\n%s", name, out.String())
		}
	}
}

// A file may have another call for each instruction of a path: a label says of how many.
func TestLabelsAreBounded(t *testing.T) {
	s := querytest.InlinedCompressor()
	block := &s.Routines[0].Blocks[1]
	block.Lengths, block.Spans = make([]byte, 1000), nil
	for i := range block.Lengths {
		block.Lengths[i] = 1
		s.Calls = append(s.Calls, wpp.Call{Name: "f"})
		block.Spans = append(block.Spans, wpp.Span{From: i, To: i + 1, Call: len(s.Calls)})
	}
	if n := len(labelOf(s, "main", 1).Inlined); n != mostInlined {
		t.Errorf("%d calls of a thousand, want %d", n, mostInlined)
	}
}

package wpp_test

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// What readers of inlined calls rely on is checked.
func TestInlinedCallsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *wpp.Snapshot)
		want   string
	}{
		"in itself":      {func(s *wpp.Snapshot) { s.Calls[0].In = 1 }, "call 1: is in call 1"},
		"in a later one": {func(s *wpp.Snapshot) { s.Calls[1].In = 3 }, "call 2: is in call 3"},
		"in none": {func(s *wpp.Snapshot) { s.Calls[1].In = -1 },
			"call 2: is in call -1"},
		"no file": {func(s *wpp.Snapshot) { s.Calls[1].File = 2 },
			"call 2: file 2 of 2"},
		"no line": {func(s *wpp.Snapshot) { s.Calls[1].Line = -1 },
			"call 2: lines -1 to -1"},
		"no call": {func(s *wpp.Snapshot) { spansOf(s)[1].Call = 4 },
			"routine 0: block 0: call 4 of 4"},
		"no file of a span": {func(s *wpp.Snapshot) { spansOf(s)[1].File = -1 },
			"routine 0: block 0: file -1 of 2"},
		"lines of a span": {func(s *wpp.Snapshot) { spansOf(s)[1].Last = 6 },
			"routine 0: block 0: lines 7 to 6"},
		"not from the start": {func(s *wpp.Snapshot) { spansOf(s)[0].From = 1 },
			"routine 0: block 0: span from 1 to 1 stands at 0"},
		"empty": {func(s *wpp.Snapshot) { spansOf(s)[0].To = 0 },
			"routine 0: block 0: span from 0 to 0 stands at 0"},
		"with a hole": {func(s *wpp.Snapshot) { spansOf(s)[1].From = 2 },
			"routine 0: block 0: span from 2 to 3 stands at 1"},
		"not to the end": {func(s *wpp.Snapshot) { spansOf(s)[1].To = 2 },
			"routine 0: block 0: spans do not have as many instructions"},
		"beyond the end": {func(s *wpp.Snapshot) { spansOf(s)[1].To = 4 },
			"routine 0: block 0: spans do not have as many instructions"},
		"too many in each other": {func(s *wpp.Snapshot) {
			for i := range 1 << 10 {
				s.Calls = append(s.Calls, wpp.Call{In: i + 3})
			}
		}, "call 1027: is in more than 1024 others"},
	} {
		s := wpptest.Inlined()
		c.change(s)
		if err := s.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func spansOf(s *wpp.Snapshot) []wpp.Span { return s.Routines[0].Blocks[0].Spans }

func TestSpansOfPieces(t *testing.T) {
	s := wpptest.Inlined()
	for sym, want := range map[uint32][]wpp.Span{
		0: {{From: 0, To: 1, Line: 10, Last: 10},
			{From: 1, To: 3, Call: 2, File: 1, Line: 7, Last: 9}, {From: 0, To: 1, Call: 3}},
		// whose first two instructions did not run, nor its last
		2: {{From: 2, To: 3, Call: 2, File: 1, Line: 7, Last: 9}, {From: 0, To: 1, Call: 3},
			{From: 0, To: 2}},
	} {
		var got []wpp.Span
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

func ExampleSnapshot_Stack() {
	s := wpptest.Inlined()
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

package profile

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
)

// A stack takes operations and counts who is innermost when a routine is entered: the definition of
// a caller, on the expansion.
type stack struct {
	open  []int
	calls []int // the routine at the bottom of each activation, or NoRoutine: who called
}

func (s *stack) EnterRoutine(routine int, _ ops.Caller) {
	s.calls = append(s.calls, NoRoutine)
	if n := len(s.open); n > 0 {
		s.calls[len(s.calls)-1] = s.open[n-1]
	}
	s.open = append(s.open, routine)
}
func (s *stack) NewPath(int, uint64, uint64) {}
func (s *stack) LeaveRoutine()               { s.open = s.open[:len(s.open)-1] }
func (s *stack) Mark(ops.Mark, uint64)       {}

// bruteCallers finds the callers of a routine on the expansion.
func bruteCallers(s *wpp.Snapshot, routine int) map[Caller]uint64 {
	found := map[Caller]uint64{}
	for i := range s.Threads {
		now := &stack{}
		x := ops.NewExpander(now)
		var before *wpp.Symbol
		for sym := range s.Threads[i].Grammar.Expand(0) {
			p := &s.Symbols[sym]
			now.calls = nil
			if p.IsMark {
				x.Mark(p.Mark, p.N)
			} else {
				x.Path(p.Routine, p.Path, p.Start, p.End)
			}
			if !p.IsMark && p.Start == ops.StartEntry && p.Routine == routine {
				c := Caller{Routine: now.calls[0], Tail: NoRoutine}
				if before != nil && !before.IsMark && before.End == ops.EndTail {
					c.Tail = before.Routine
				}
				c.Signal = before != nil && before.IsMark && before.Mark == ops.Handler
				found[c]++
			}
			before = p
		}
	}
	return found
}

// drawCalls draws a snapshot of routines that call each other, in any order and with any marks.
func drawCalls(t *rapid.T) *wpp.Snapshot {
	s := querytest.Named("f", "g", "h")
	s.Symbols, s.Threads = nil, nil
	starts := []ops.Start{ops.StartEntry, ops.StartEntry, ops.StartCall, ops.StartResume}
	ends := []ops.End{ops.EndCall, ops.EndCall, ops.EndReturn, ops.EndTail, ops.EndLoop}
	for i := range rapid.IntRange(2, 9).Draw(t, "symbols") {
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			s.Symbols = append(s.Symbols, wpp.Symbol{IsMark: true,
				Mark: rapid.SampledFrom([]ops.Mark{ops.Gap, ops.Resume, ops.Unwind, ops.Handler}).
					Draw(t, "mark"), N: rapid.Uint64Range(0, 3).Draw(t, "n")})
			continue
		}
		s.Symbols = append(s.Symbols, wpp.Symbol{Routine: rapid.IntRange(0, 2).Draw(t, "routine"),
			Path: uint64(i), Start: rapid.SampledFrom(starts).Draw(t, "start"),
			End: rapid.SampledFrom(ends).Draw(t, "end")})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "threads") {
		g := querytest.DrawSequitur(t, len(s.Symbols))
		if rapid.Bool().Draw(t, "any grammar") {
			g = querytest.DrawGrammar(t, len(s.Symbols))
		}
		s.Threads = append(s.Threads, wpp.Thread{TID: 100 + i, Grammar: g})
	}
	return s
}

// TestCallersAreThoseOfTheExpansion: what the grammar says of callers is what the stack says, path
// by path, in one piece and in segments.
func TestCallersAreThoseOfTheExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCalls(t)
		segmented := wpptest.InSegments(s, wpptest.Cuts(t))
		for routine, name := range []string{"f", "g", "h"} {
			want := bruteCallers(s, routine)
			for _, s := range []*wpp.Snapshot{s, segmented} {
				r, err := CallersOf(s, name)
				if err != nil {
					t.Fatal(err)
				}
				got, sum := map[Caller]uint64{}, uint64(0)
				for _, c := range r.Callers {
					n := c.Count
					sum += n
					c.Count = 0
					got[c] = n
				}
				if diff := gocmp.Diff(want, got); diff != "" || sum != r.Calls {
					t.Fatalf("callers of %s, %d of %d: expansion -, grammar +:\n%s", name, sum,
						r.Calls, diff)
				}
			}
		}
	})
}

// TestCallersOfDeepStacks: a grammar of a few rules that opens 2^59 activations, and then ends as
// many or calls from there, takes no time.
func TestCallersOfDeepStacks(t *testing.T) {
	s := querytest.Named("f", "g")
	s.Symbols = []wpp.Symbol{
		{Routine: 0, Start: ops.StartEntry, End: ops.EndCall},
		{Routine: 1, Start: ops.StartEntry, End: ops.EndReturn},
		{Routine: 0, Path: 1, Start: ops.StartCall, End: ops.EndReturn},
	}
	s.Threads = s.Threads[:1]
	rule := wpp.RuleSymbol
	s.Threads[0].Grammar = querytest.Repeated(t, 59, []uint32{rule(1), 1, 2, 1}, []uint32{0, 0})
	for name, want := range map[string][]Caller{
		"f": {{0, NoRoutine, false, 1<<60 - 1}, {NoRoutine, NoRoutine, false, 1}},
		"g": {{0, NoRoutine, false, 2}},
	} {
		r, err := CallersOf(s, name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Callers, want) {
			t.Errorf("%s: %+v, want %+v", name, r.Callers, want)
		}
	}
}

// TestCallersHaveALimit: where there are calls from too many depths, that is said, and what to do.
func TestCallersHaveALimit(t *testing.T) {
	s := querytest.Named("f", "g")
	s.Symbols = []wpp.Symbol{
		{Routine: 0, Start: ops.StartEntry, End: ops.EndCall},
		{Routine: 0, Path: 1, Start: ops.StartCall, End: ops.EndReturn},
		{Routine: 1, Start: ops.StartEntry, End: ops.EndReturn},
	}
	s.Threads[0].Grammar = wpptest.GrammarOf(
		append(slices.Repeat([]uint32{0}, 64), slices.Repeat([]uint32{1, 2}, 64)...)...)
	if _, err := CallersOf(s, "g"); err != nil {
		t.Fatal(err)
	}
	before := mostOpen
	mostOpen = 5
	t.Cleanup(func() { mostOpen = before })
	if _, err := CallersOf(s, "g"); err == nil || !strings.HasPrefix(err.Error(),
		"callers of g: it is called from more than 5 depths: ask for one thread, or ") {
		t.Errorf("%v", err)
	}
}

// TestCallersByName: what names no routine is refused, with what may be meant.
func TestCallersByName(t *testing.T) {
	s := querytest.InlinedCompressor()
	for name, want := range map[string]string{
		"mian":   "callers of mian: no routine mian, but main",
		"main#1": "callers of main#1: it is a path: name its routine, without #1",
		"next_block": "callers of next_block: next_block has no code of its own in the snapshot: " +
			"it is inlined into main, where calls of it are not counted",
	} {
		if _, err := CallersOf(s, name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	r, err := CallersOf(s, "longest_match...int)")
	if err != nil {
		t.Fatal(err)
	}
	if want := []Caller{{0, NoRoutine, false, 100}}; !slices.Equal(r.Callers, want) ||
		r.Calls != 100 {
		t.Errorf("%+v", r)
	}
	if _, err := CallersOf(s, "main", 1); err == nil {
		t.Error("there is no thread 1")
	}
}

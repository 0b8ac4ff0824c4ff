package pairs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/ops"
)

var starts = map[byte]ops.Start{'e': ops.StartEntry, 'l': ops.StartLoop, 'c': ops.StartCall,
	'p': ops.StartPad, 'x': ops.StartExtra, 'r': ops.StartResume}

var ends = map[byte]ops.End{'l': ops.EndLoop, 'c': ops.EndCall, 'r': ops.EndReturn,
	't': ops.EndTail, 'n': ops.EndNoReturn, 'x': ops.EndExtra, '-': ops.EndCut}

var marks = map[byte]ops.Mark{'G': ops.Gap, 'R': ops.Resume, 'U': ops.Unwind, 'C': ops.Cut,
	'H': ops.Handler}

// walk walks a stream of paths, each two letters for its start and end, and marks, and prints the
// pairs by their places in the stream, and what broke others.
func walk(stream string) string {
	var w Walk
	var out []string
	for i, word := range strings.Fields(stream) {
		if m, ok := marks[word[0]]; ok {
			n := uint64(1)
			if len(word) > 1 {
				n = uint64(word[1] - '0')
			}
			w.Mark(m, n)
			continue
		}
		if before, kind := w.Path(uint32(i), starts[word[0]], ends[word[1]]); kind != None {
			out = append(out, fmt.Sprintf("%d %v %d", before, kind, i))
		}
	}
	w.Close()
	for b, n := range w.Breaks {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d: %v", n, Break(b)))
		}
	}
	return strings.Join(out, ", ")
}

func TestWalk(t *testing.T) {
	for _, test := range []struct{ name, stream, want string }{
		{"a loop", "el ll ll lr", "0 loop 1, 1 loop 2, 2 loop 3, 1: the end"},
		{"a call and its return", "ec er cr", "0 call 1, 1 return 2, 1: the end"},
		{"recursion", "ec ec er cr cr",
			"0 call 1, 1 call 2, 2 return 3, 3 return 4, 1: the end"},
		{"external code is called", "ec cc er cn", "1 call 2, 2 return 3"},
		{"it calls back three times", "ec er er er cn",
			"0 call 1, 1: begun by external code or a signal"},
		{"a callee of several paths", "ec ex xc cr cn", "0 call 1, 3 return 4"},
		{"a tail call", "ec et er cn", "0 call 1, 2 return 3"},
		{"a tail jump to external code", "ec et cn", "0 call 1"},
		{"a tail jump of what external code began", "er et er cn",
			"1: begun by external code or a signal"},
		{"a gap", "el G ln", "1: events were lost"},
		{"a gap behind a path that ends otherwise", "en G ln", ""},
		{"a gap, after which the thread has begun anew", "ec G U2 R rr R cn",
			"2: events were lost"},
		{"a handler amid a loop", "el H er ln",
			"1: a signal handler, 1: went on elsewhere"},
		{"a handler amid external code", "ec H er cn",
			"1: begun by external code or a signal, 1: a signal handler"},
		{"an exception", "ec ec U1 pn", "0 call 1, 1: unwinding"},
		{"an exception out of external code", "ec pn", "1: went on elsewhere"},
		{"longjmp", "ec ec ec C U2 cn", "0 call 1, 1 call 2, 1: a partial path"},
		{"a cut path", "ec el l- C U1 cn", "0 call 1, 1: a partial path"},
		{"a path whose beginning is lost", "R rl ll ln", "2 loop 3, 1: a partial path"},
		{"more unwound than is open", "ec U9 er cn", "1: unwinding, 1: begun by external code " +
			"or a signal"},
	} {
		got := strings.Split(walk(test.stream), ", ")
		want := strings.Split(test.want, ", ")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", test.name, got, want)
		}
	}
}

func TestAgain(t *testing.T) {
	var w Walk
	w.Path(1, ops.StartLoop, ops.EndLoop)
	if n := w.Again(5); n != 5 {
		t.Error(n)
	}
	if before, kind := w.Path(2, ops.StartLoop, ops.EndReturn); before != 1 || kind != Loop {
		t.Error(before, kind)
	}
	w.Path(1, ops.StartResume, ops.EndLoop)
	if n := w.Again(3); n != 0 || w.Breaks[Partial] != 3 {
		t.Error(n, w.Breaks)
	}
}

func ExampleWalk() {
	var w Walk
	for _, p := range []struct {
		sym   uint32
		start ops.Start
		end   ops.End
	}{{10, ops.StartEntry, ops.EndCall}, {11, ops.StartEntry, ops.EndReturn},
		{12, ops.StartCall, ops.EndLoop}, {13, ops.StartLoop, ops.EndReturn}} {
		if before, kind := w.Path(p.sym, p.start, p.end); kind != None {
			fmt.Println(before, kind, p.sym)
		}
	}
	// Output:
	// 10 call 11
	// 11 return 12
	// 12 loop 13
}

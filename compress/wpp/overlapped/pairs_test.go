package overlapped

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/compress/ops"
)

// code is what paths are in these tests: 7*start + end, and 100 times the routine that the call or
// jump at its end is of, plus one.
func code(start ops.Start, end ops.End, callee int) uint64 {
	return 100*uint64(callee+1) + 7*uint64(start) + uint64(end)
}

func describe(alphabet *ops.Symbols) func(sym uint32) Path {
	return func(sym uint32) Path {
		m := alphabet.Meaning(sym)
		number := m.Path
		p := Path{Routine: m.Routine, Start: ops.Start(number % 100 / 7),
			End: ops.End(number % 100 % 7), Callee: int(number/100) - 1}
		p.Whole = p.Start != ops.StartResume && p.End != ops.EndCut
		return p
	}
}

// TestPairs has the ways in which paths follow one another, and those in which they do not.
func TestPairs(t *testing.T) {
	const f, g, h = 0, 1, 2
	loop := code(ops.StartLoop, ops.EndLoop, -1)
	intoG, backF := code(ops.StartEntry, ops.EndCall, g), code(ops.StartCall, ops.EndReturn, -1)
	intoAny := code(ops.StartEntry, ops.EndCall, -1)
	leaf := code(ops.StartEntry, ops.EndReturn, -1)
	jump := code(ops.StartEntry, ops.EndTail, h)
	pair := func(kind Kind, p, q uint64, times uint64) string {
		return fmt.Sprint(kind, p, q, times)
	}
	for _, test := range []struct {
		name   string
		run    func(s ops.Sink)
		want   []string
		broken [Reasons]uint64
	}{
		{name: "rounds of a loop", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, code(ops.StartEntry, ops.EndLoop, -1), 1)
			s.NewPath(f, loop, 5)
			s.NewPath(f, code(ops.StartLoop, ops.EndReturn, -1), 1)
			s.LeaveRoutine()
		}, want: []string{pair(OverLoop, code(ops.StartEntry, ops.EndLoop, -1), loop, 1),
			pair(OverLoop, loop, loop, 4),
			pair(OverLoop, loop, code(ops.StartLoop, ops.EndReturn, -1), 1)}},
		{name: "call and return", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, leaf, 1), pair(Back, leaf, backF, 1)}},
		{name: "a tail jump returns where the first callee would have", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g)
			s.NewPath(g, jump, 1)
			s.LeaveRoutine()
			s.EnterRoutine(h)
			s.NewPath(h, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, jump, 1), pair(Back, leaf, backF, 1)}},
		{name: "called back from external code", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, intoAny, 1)
			s.EnterRoutine(g)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, broken: [Reasons]uint64{External: 2}},
		{name: "recursion", run: func(s ops.Sink) {
			again := code(ops.StartEntry, ops.EndCall, f)
			s.EnterRoutine(f)
			s.NewPath(f, again, 1)
			s.EnterRoutine(f)
			s.NewPath(f, again, 1)
			s.EnterRoutine(f)
			s.NewPath(f, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, want: func() []string {
			again := code(ops.StartEntry, ops.EndCall, f)
			return []string{pair(Into, again, again, 1), pair(Into, again, leaf, 1),
				pair(Back, leaf, backF, 1), pair(Back, backF, backF, 1)}
		}()},
		{name: "an exception is thrown through a call", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g)
			s.NewPath(g, intoAny, 1)
			s.Mark(ops.Unwind, 1)
			s.LeaveRoutine()
			s.NewPath(f, code(ops.StartPad, ops.EndReturn, -1), 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, intoAny, 1)}, broken: [Reasons]uint64{Marked: 1}},
		{name: "a handler between two rounds", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, loop, 1)
			s.Mark(ops.Handler, 0)
			s.EnterRoutine(g)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, loop, 1)
		}, broken: [Reasons]uint64{Marked: 1}},
		{name: "events are lost", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, loop, 1)
			s.Mark(ops.Gap, 3)
			s.NewPath(f, loop, 1)
		}, broken: [Reasons]uint64{Marked: 1}},
		{name: "a path is cut off", run: func(s ops.Sink) {
			s.EnterRoutine(f)
			s.NewPath(f, loop, 1)
			s.NewPath(f, code(ops.StartLoop, ops.EndCut, -1), 1)
			s.NewPath(f, loop, 1)
		}, broken: [Reasons]uint64{Partial: 1}},
		{name: "before all that is known", run: func(s ops.Sink) {
			s.LeaveRoutine()
			s.NewPath(f, loop, 1)
			s.Mark(ops.Cut, 0)
			s.Mark(ops.Unwind, 1<<63)
		}, broken: [Reasons]uint64{Marked: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var alphabet ops.Symbols
			var got []string
			s := NewPairs(&alphabet, describe(&alphabet),
				func(kind Kind, p, q uint32, times uint64) {
					got = append(got, pair(kind, alphabet.Meaning(p).Path, alphabet.Meaning(q).Path,
						times))
				})
			test.run(s.Thread())
			if !slices.Equal(got, test.want) || s.Broken != test.broken {
				t.Errorf("%q, want %q; %v, want %v", got, test.want, s.Broken, test.broken)
			}
		})
	}
}

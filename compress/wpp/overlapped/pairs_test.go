package overlapped

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp/entries"
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
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, code(ops.StartEntry, ops.EndLoop, -1), 1)
			s.NewPath(f, loop, 5)
			s.NewPath(f, code(ops.StartLoop, ops.EndReturn, -1), 1)
			s.LeaveRoutine()
		}, want: []string{pair(OverLoop, code(ops.StartEntry, ops.EndLoop, -1), loop, 1),
			pair(OverLoop, loop, loop, 4),
			pair(OverLoop, loop, code(ops.StartLoop, ops.EndReturn, -1), 1)}},
		{name: "call and return", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g, ops.Unknown)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, leaf, 1), pair(Back, leaf, backF, 1)}},
		{name: "a tail jump returns where the first callee would have", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g, ops.Unknown)
			s.NewPath(g, jump, 1)
			s.LeaveRoutine()
			s.EnterRoutine(h, ops.Unknown)
			s.NewPath(h, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, jump, 1), pair(Back, leaf, backF, 1)}},
		{name: "called back from external code", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, intoAny, 1)
			s.EnterRoutine(g, ops.Unknown)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, backF, 1)
			s.LeaveRoutine()
		}, broken: [Reasons]uint64{External: 2}},
		{name: "recursion", run: func(s ops.Sink) {
			again := code(ops.StartEntry, ops.EndCall, f)
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, again, 1)
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, again, 1)
			s.EnterRoutine(f, ops.Unknown)
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
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, intoG, 1)
			s.EnterRoutine(g, ops.Unknown)
			s.NewPath(g, intoAny, 1)
			s.Mark(ops.Unwind, 1)
			s.LeaveRoutine()
			s.NewPath(f, code(ops.StartPad, ops.EndReturn, -1), 1)
			s.LeaveRoutine()
		}, want: []string{pair(Into, intoG, intoAny, 1)}, broken: [Reasons]uint64{Marked: 1}},
		{name: "a handler between two rounds", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, loop, 1)
			s.Mark(ops.Handler, 0)
			s.EnterRoutine(g, ops.Unknown)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, loop, 1)
		}, broken: [Reasons]uint64{Marked: 1}},
		{name: "events are lost", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
			s.NewPath(f, loop, 1)
			s.Mark(ops.Gap, 3)
			s.NewPath(f, loop, 1)
		}, broken: [Reasons]uint64{Marked: 1}},
		{name: "a path is cut off", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.Unknown)
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

// TestCallsWithoutNames has calls and tail jumps whose callees the code does not name. Who began an
// activation a decoder says, or of a stream that was kept the counts of entries, or nobody.
func TestCallsWithoutNames(t *testing.T) {
	const f, g, h = 0, 1, 2
	call, back := code(ops.StartEntry, ops.EndCall, -1), code(ops.StartCall, ops.EndReturn, -1)
	leaf, jump := code(ops.StartEntry, ops.EndReturn, -1), code(ops.StartEntry, ops.EndTail, -1)
	into, behind := "call of f, g", "return of g, f"
	calls := func(by ops.Caller, callee int) func(s ops.Sink) {
		return func(s ops.Sink) {
			s.EnterRoutine(f, ops.External)
			s.NewPath(f, call, 1)
			s.EnterRoutine(callee, by)
			s.NewPath(callee, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, back, 1)
			s.LeaveRoutine()
		}
	}
	jumps := func(first, second ops.Caller) func(s ops.Sink) {
		return func(s ops.Sink) {
			s.EnterRoutine(f, ops.External)
			s.NewPath(f, call, 1)
			s.EnterRoutine(g, first)
			s.NewPath(g, jump, 1)
			s.LeaveRoutine()
			s.EnterRoutine(h, second)
			s.NewPath(h, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(f, back, 1)
			s.LeaveRoutine()
		}
	}
	fg, gh := entries.Call{Routine: f, Block: 5, Callee: g}, entries.Call{Routine: g, Block: 5,
		Callee: h}
	kept := func(list ...any) entries.Counts {
		c := entries.Counts{}
		for i := 0; i < len(list); i += 2 {
			c[list[i].(entries.Call)] = list[i+1].(entries.Count)
		}
		return c
	}
	directly, both := entries.Count{Traced: 7}, entries.Count{Traced: 7, External: 1}
	called := entries.Count{External: 7}
	for _, test := range []struct {
		name    string
		run     func(s ops.Sink)
		entries entries.Counts
		want    []string
		broken  [Reasons]uint64
		unsure  []string
	}{
		{name: "a traced routine called", run: calls(ops.Traced, g), want: []string{into, behind}},
		{name: "external code called back", run: calls(ops.External, g),
			broken: [Reasons]uint64{External: 2}},
		{name: "a traced routine jumped", run: jumps(ops.Traced, ops.Traced),
			want: []string{into, "return of h, f"}},
		{name: "what was called back jumped", run: jumps(ops.External, ops.Traced),
			broken: [Reasons]uint64{External: 2}},
		{name: "it jumped to what called back", run: jumps(ops.Traced, ops.External),
			want: []string{into}, broken: [Reasons]uint64{External: 1}},
		{name: "a handler comes before the first path", run: func(s ops.Sink) {
			s.EnterRoutine(f, ops.External)
			s.NewPath(f, call, 1)
			s.EnterRoutine(g, ops.Traced)
			s.Mark(ops.Handler, 0)
			s.EnterRoutine(h, ops.External)
			s.NewPath(h, call, 1)
			s.EnterRoutine(g, ops.External)
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
			s.NewPath(h, back, 1)
			s.LeaveRoutine()
			s.NewPath(g, leaf, 1)
			s.LeaveRoutine()
		}, broken: [Reasons]uint64{External: 2, Marked: 1}},
		{name: "it is kept that all were direct", run: calls(ops.Unknown, g),
			entries: kept(fg, directly), want: []string{into, behind}},
		{name: "it is kept that none was", run: calls(ops.Unknown, g), entries: kept(fg, called),
			broken: [Reasons]uint64{External: 2}},
		{name: "some were", run: calls(ops.Unknown, g), entries: kept(fg, both),
			broken: [Reasons]uint64{Mixed: 2}, unsure: []string{into, behind}},
		{name: "it is kept of another callee", run: calls(ops.Unknown, h),
			entries: kept(fg, directly), broken: [Reasons]uint64{External: 2},
			unsure: []string{"call of f, h", "return of h, f"}},
		{name: "it is not kept", run: calls(ops.Unknown, g), broken: [Reasons]uint64{External: 2},
			unsure: []string{into, behind}},
		{name: "all were direct, and jumps", run: jumps(ops.Unknown, ops.Unknown),
			entries: kept(fg, directly, gh, directly), want: []string{into, "return of h, f"}},
		{name: "some jumps led to call-backs", run: jumps(ops.Unknown, ops.Unknown),
			entries: kept(fg, directly, gh, both), want: []string{into},
			broken: [Reasons]uint64{Mixed: 1}, unsure: []string{"return of h, f"}},
		{name: "some of what jumped was called back", run: jumps(ops.Unknown, ops.Unknown),
			entries: kept(fg, both, gh, directly), broken: [Reasons]uint64{Mixed: 2},
			unsure: []string{into, "return of h, f"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var alphabet ops.Symbols
			var got, unsure []string
			spell := func(kind Kind, p, q uint32) string {
				first, second := alphabet.Meaning(p), alphabet.Meaning(q)
				names := []string{"f", "g", "h"}
				if kind == Into {
					return fmt.Sprintf("call of %s, %s", names[first.Routine],
						names[second.Routine])
				}
				return fmt.Sprintf("return of %s, %s", names[first.Routine],
					names[second.Routine])
			}
			of := describe(&alphabet)
			s := NewPairs(&alphabet, func(sym uint32) Path {
				p := of(sym)
				p.At = 5
				return p
			}, func(kind Kind, p, q uint32, _ uint64) { got = append(got, spell(kind, p, q)) })
			s.Entries = test.entries
			s.Unsure = func(u Unsure) { unsure = append(unsure, spell(u.Kind, u.P, u.Q)) }
			test.run(s.Thread())
			if !slices.Equal(got, test.want) || s.Broken != test.broken ||
				!slices.Equal(unsure, test.unsure) {
				t.Errorf("%q, want %q; %v, want %v; %q, want %q", got, test.want, s.Broken,
					test.broken, unsure, test.unsure)
			}
		})
	}
}

package kerneltests

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

// calling are programs whose calls go through pointers, tables and stubs, to themselves, to
// libraries and back, also where these fault or are left. Their pairs are held against
// single-stepping.
var calling = []string{"callbacks", "called_faults", "callback_faults", "coroutines",
	"exception_callbacks", "function_tables", "thread_ends", "virtuals"}

// isStepped reports whether the pairs of a case are held against single-stepping: of all that do
// the same each time, in the matrix.
func isStepped(c zoo.Case) bool {
	x := expectation(c)
	return !x.Apart && !x.Execs && (matrix() || slices.Contains(calling, c.Program.Name))
}

// entriesAgree fails the test unless it is true what a recording says of how activations began at
// calls that do not name their callees.
func (r *runs) entriesAgree(t *testing.T, by beginnings) {
	t.Helper()
	want, named := entries.Counts{}, r.byName(t)
	p, err := overlapped.Of(r.profile)
	if err != nil {
		t.Fatal(err)
	}
	overlapsIn(t, r.whole, r.profile, p, nil, func(thread int, insns uint64, before,
		first uint32) beginning {
		how := by(thread, insns, before, first)
		if r.whole.Symbols[before].End == ops.EndCall &&
			named(thread, insns, before, first) == perhaps {
			call := callOf(r.whole, before, first)
			n := want[call]
			if how == direct {
				n.Traced++
			} else {
				n.External++
			}
			want[call] = n
		}
		return how
	})
	got, err := entries.Of(r.whole)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(got, func(call entries.Call, _ entries.Count) bool {
		_, ok := want[call]
		return !ok && isTailJump(r.whole, call)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of how activations began: %s", diff)
	}
}

// isTailJump reports whether a call is one by a tail jump.
func isTailJump(s *wpp.Snapshot, call entries.Call) bool {
	return slices.ContainsFunc(s.Symbols, func(y wpp.Symbol) bool {
		return !y.IsMark && y.Routine == call.Routine && y.End == ops.EndTail &&
			len(y.Blocks) > 0 && y.Blocks[len(y.Blocks)-1] == call.Block
	})
}

// stepped knows how activations of a recording began from a run that is single-stepped, and alike:
// directly where the return address is on the stack where the call has put it.
func (r *runs) stepped(t *testing.T) beginnings {
	t.Helper()
	s, libraries := r.whole, r.target.Libraries
	run, traced := r.step(t)
	type point struct{ pc, sp uint64 }
	var threads [][]point // those in which something traced ran
	for _, thread := range run.Threads {
		var points []point
		for i, pc := range thread.Insns {
			if r, ok := traced.Find(pc); ok && r.Traced {
				points = append(points, point{pc, thread.Stack[i]})
			}
		}
		if len(points) > 0 {
			threads = append(threads, points)
		}
	}
	at := map[int]int{} // their numbers, by those that they have in the recording
	for i := range s.Threads {
		for sym := range s.Threads[i].Grammar.Expand(0) {
			if len(s.Symbols[sym].Blocks) > 0 {
				at[i] = len(at)
				break
			}
		}
	}
	return func(thread int, insns uint64, before, first uint32) beginning {
		p, q := &s.Symbols[before], &s.Symbols[first]
		if len(q.Blocks) == 0 {
			return perhaps
		}
		ran := threads[at[thread]]
		call, entry := ran[insns-1], ran[insns]
		of := &s.Routines[q.Routine]
		if pc := truth.Placed(libraries, filepath.Base(s.Images[of.Image].Name),
			of.Blocks[q.Blocks[0]].Addr); entry.pc != pc {
			t.Fatalf("%#x ran, and %#x was recorded", entry.pc, pc)
		}
		slot := call.sp
		if p.End == ops.EndCall {
			slot -= 8
		}
		if entry.sp == slot {
			return direct
		}
		return indirect
	}
}

// step single-steps the target, again if it is not what was recorded: a virtual machine was seen to
// lose a step.
func (r *runs) step(t *testing.T) (*truth.Trace, truth.Routines) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	record, err := tracer.Read(ctx, r.file, r.target.Libraries...)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var run *truth.Trace
		if run, err = truth.Run(ctx, truth.Options{Path: r.target.Path, Args: r.target.Args,
			Env: r.target.Env, Dir: r.target.Dir, Stdin: r.target.Stdin, Stack: true,
			FixedAddresses: r.target.FixedAddresses, Libraries: r.target.Libraries}); err != nil {
			break
		}
		if err = truth.Compare(record.Streams, run, record.Routines, truth.Exact); err == nil {
			return run, record.Routines
		}
	}
	t.Fatal(err)
	return nil, nil
}

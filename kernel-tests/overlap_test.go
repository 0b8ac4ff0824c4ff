package kerneltests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
)

// overlapDegree is that of the overlapping paths that profiles count in these tests.
const overlapDegree = "2"

// overlapsAgree fails the test unless a profile has the counts of all overlapping paths that the
// whole program path of a run that was alike has.
func overlapsAgree(t *testing.T, whole, profile *wpp.Snapshot, aside []string) {
	t.Helper()
	p, err := overlapped.Of(profile)
	if err != nil {
		t.Fatal(err)
	}
	if p == nil || len(p.Uncounted) > 0 {
		t.Fatalf("overlapping paths are not counted: %+v", p)
	}
	got := map[string]uint64{}
	for _, c := range p.Counts {
		x := p.Extensions[c.Extension]
		if !slices.Contains(aside, routineOf(profile, int(c.Path))) &&
			!slices.Contains(aside, profile.Routines[x.Routine].Name) {
			got[overlapName(profile, c.Path, x)] += c.N
		}
	}
	want := overlapsIn(t, whole, profile, p, aside)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%d overlapping paths, and %d in the profile: %s", len(want), len(got), diff)
	}
}

func overlapName(s *wpp.Snapshot, path uint32, x overlapped.Extension) string {
	p := &s.Symbols[path]
	from, to := &s.Routines[p.Routine], &s.Routines[x.Routine]
	return fmt.Sprintf("%s#%d at %x ! %s %x, loop %d, blocks %d", from.Name, p.Path, from.Entry,
		to.Name, to.Entry, x.Loop, x.Blocks)
}

// overlapsIn is how often each overlapping path ran, by the symbols that stand side by side in the
// streams of threads: nothing else comes between a path and what directly follows it. The profile
// says which blocks are predicates, which are of loops, and whom they call.
func overlapsIn(t *testing.T, s, profile *wpp.Snapshot, p *overlapped.Profile,
	aside []string) map[string]uint64 {
	t.Helper()
	type activation struct{ returnsToCaller bool }
	all := map[string]uint64{}
	count := func(path, next uint32) {
		q := &s.Symbols[next]
		if slices.Contains(aside, routineOf(s, int(path))) ||
			slices.Contains(aside, routineOf(s, int(next))) {
			return
		}
		shape := shapeIn(t, s, profile, p, q.Routine)
		x := overlapped.Extension{Routine: q.Routine, Loop: -1}
		left := p.Degree + 1
		in := func(int) bool { return true }
		if q.Start == ops.StartLoop {
			x.Loop = slices.IndexFunc(shape.Loops, func(l overlapped.Loop) bool {
				return l.Head == q.Blocks[0]
			})
			if x.Loop < 0 {
				t.Fatalf("no loop of %s has the head %d", s.Routines[q.Routine].Name, q.Blocks[0])
			}
			if shape.Loops[x.Loop].LeftOut != "" {
				return
			}
			in = func(b int) bool { return slices.Contains(shape.Loops[x.Loop].Blocks, b) }
		}
		for _, b := range q.Blocks {
			if left == 0 || !in(b) {
				break
			}
			x.Blocks = append(x.Blocks, b)
			if slices.Contains(shape.Predicates, b) {
				left--
			}
		}
		all[overlapName(s, path, x)]++
	}
	leadsTo := func(path uint32) int { // the routine that is called or jumped to
		symbol := &s.Symbols[path]
		for _, c := range shapeIn(t, s, profile, p, symbol.Routine).Calls {
			if c.Block == symbol.Blocks[len(symbol.Blocks)-1] {
				return c.Routine
			}
		}
		return -1
	}
	isWhole := func(sym uint32) bool {
		x := &s.Symbols[sym]
		return !x.IsMark && x.Start != ops.StartResume && x.End != ops.EndCut
	}
	for _, thread := range s.Threads {
		var open []activation
		resumes, first := false, true
		before, jumped := uint32(0), false // jumped: by an activation that returns to its caller
		for sym := range thread.Grammar.Expand(0) {
			x := &s.Symbols[sym]
			end := ops.EndCut // of the path before
			if !first && isWhole(before) {
				end = s.Symbols[before].End
			}
			follows := isWhole(sym)
			switch {
			case x.IsMark && x.Mark == ops.Unwind:
				open = open[:len(open)-int(min(x.N, uint64(len(open))))]
			case x.IsMark:
			default:
				if x.Start == ops.StartEntry || resumes {
					called := end == ops.EndCall && leadsTo(before) == x.Routine
					if called && follows {
						count(before, sym)
					}
					open = append(open, activation{called || end == ops.EndTail && jumped &&
						leadsTo(before) == x.Routine})
				}
				if follows && end == ops.EndLoop && x.Start == ops.StartLoop {
					count(before, sym)
				}
				if follows && end == ops.EndReturn && x.Start == ops.StartCall && jumped {
					count(before, sym)
				}
				jumped = false
				if n := len(open); n > 0 && (x.End == ops.EndReturn || x.End == ops.EndTail) {
					jumped = open[n-1].returnsToCaller
					open = open[:n-1]
				}
			}
			if x.IsMark && x.Mark == ops.Gap {
				t.Fatal("events were lost")
			}
			resumes = x.IsMark && x.Mark == ops.Resume
			before, first = sym, false
		}
	}
	return all
}

// shapeIn returns the shape of a routine of a snapshot in a profile of the same program.
func shapeIn(t *testing.T, s, profile *wpp.Snapshot, p *overlapped.Profile,
	routine int) *overlapped.Shape {
	t.Helper()
	if profile.Routines[routine].Entry != s.Routines[routine].Entry {
		t.Fatalf("routine %d is not the same in both", routine)
	}
	shape := p.ShapeOf(routine)
	if shape == nil {
		t.Fatalf("%s has no shape", s.Routines[routine].Name)
	}
	return shape
}

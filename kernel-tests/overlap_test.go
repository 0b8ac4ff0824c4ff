package kerneltests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/shape"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query/bounds"
)

// overlapDegree is that of the overlapping paths that profiles count in these tests.
const overlapDegree = "2"

// overlapsAgree fails the test unless a profile has the counts of all overlapping paths that the
// whole program path of a run that was alike has.
func overlapsAgree(t *testing.T, whole, profile *wpp.Snapshot, aside []string, by beginnings) {
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
	want := overlapsIn(t, whole, profile, p, aside, by)
	if diff := cmp.Diff(want.nearest(got), got); diff != "" {
		t.Errorf("%d overlapping paths, and %d in the profile: %s", len(want), len(got), diff)
	}
}

// overlaps are how often overlapping paths ran: as far as it is known, and as often as it may be.
type overlaps map[string]struct{ least, most uint64 }

// nearest are those counts that may be true and differ least from others.
func (o overlaps) nearest(other map[string]uint64) map[string]uint64 {
	all := map[string]uint64{}
	for name, n := range o {
		if x := min(max(other[name], n.least), n.most); x > 0 {
			all[name] = x
		}
	}
	return all
}

func overlapName(s *wpp.Snapshot, path uint32, x overlapped.Extension) string {
	p := &s.Symbols[path]
	from, to := &s.Routines[p.Routine], &s.Routines[x.Routine]
	return fmt.Sprintf("%s#%d at %x ! %s %x, loop %d, blocks %d", from.Name, p.Path, from.Entry,
		to.Name, to.Entry, x.Loop, x.Blocks)
}

// A beginning is how an activation began, and so whether it returns behind the call, or where what
// jumped there would have.
type beginning int

const (
	indirect beginning = iota // by external code, or what began it is not known
	perhaps                   // what began it is not known here
	direct                    // by the call or jump before it, perhaps through code that jumps on
)

// beginnings says how an activation began whose first path comes next behind a path that ended with
// a call or a tail jump, or with the return of what that led to: by how many instructions the
// thread had run before.
type beginnings func(thread int, insns uint64, before, first uint32) beginning

// byName knows how activations began at calls of routines by their names, as the profile says which
// these are. At all others external code may have been in between.
func (r *runs) byName(t *testing.T) beginnings {
	t.Helper()
	p, err := overlapped.Of(r.profile)
	if err != nil {
		t.Fatal(err)
	}
	return func(_ int, _ uint64, before, first uint32) beginning {
		symbol := &r.whole.Symbols[before]
		shape := shapeIn(t, r.whole, r.profile, p, symbol.Routine)
		switch shape.Callee(symbol.Blocks[len(symbol.Blocks)-1]) {
		case -1:
			return perhaps
		case r.whole.Symbols[first].Routine:
			return direct
		}
		return indirect
	}
}

// asKept does not know how activations began at calls of a recording that says that external code
// began some there, and the calls others: it leaves these out.
func (by beginnings) asKept(t *testing.T, whole *wpp.Snapshot) beginnings {
	t.Helper()
	kept, err := entries.Of(whole)
	if err != nil {
		t.Fatal(err)
	}
	return func(thread int, insns uint64, before, first uint32) beginning {
		if n := kept[callOf(whole, before, first)]; n.Traced > 0 && n.External > 0 {
			return perhaps
		}
		return by(thread, insns, before, first)
	}
}

// callOf is the call or tail jump that a path ends with, as one of the routine of another path.
func callOf(s *wpp.Snapshot, before, first uint32) entries.Call {
	p := &s.Symbols[before]
	return entries.Call{Routine: p.Routine, Block: p.Blocks[len(p.Blocks)-1],
		Callee: s.Symbols[first].Routine}
}

// overlapsIn is how often each overlapping path ran, by the symbols that stand side by side in the
// streams of threads: nothing else comes between a path and what directly follows it. The profile
// says which blocks are predicates, and which are of loops.
func overlapsIn(t *testing.T, s, profile *wpp.Snapshot, p *overlapped.Profile, aside []string,
	by beginnings) overlaps {
	t.Helper()
	all := overlaps{}
	count := func(path, next uint32, how beginning) {
		if how == indirect {
			return
		}
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
		name := overlapName(s, path, x)
		n := all[name]
		n.most++
		if how == direct {
			n.least++
		}
		all[name] = n
	}
	isWhole := func(sym uint32) bool {
		x := &s.Symbols[sym]
		return !x.IsMark && x.Start != ops.StartResume && x.End != ops.EndCut
	}
	for i, thread := range s.Threads {
		var open []beginning
		resumes, first, ran := false, true, uint64(0)
		before, ended := uint32(0), indirect // ended: how what the path before has left began
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
					how := indirect
					switch {
					case end == ops.EndCall:
						how = by(i, ran, before, sym)
						if follows {
							count(before, sym, how)
						}
					case end == ops.EndTail && ended > indirect:
						how = min(ended, by(i, ran, before, sym))
					}
					open = append(open, how)
				}
				if follows && end == ops.EndLoop && x.Start == ops.StartLoop {
					count(before, sym, direct)
				}
				if follows && end == ops.EndReturn && x.Start == ops.StartCall {
					count(before, sym, ended)
				}
				ended = indirect
				if n := len(open); n > 0 && (x.End == ops.EndReturn || x.End == ops.EndTail) {
					ended = open[n-1]
					open = open[:n-1]
				}
				for range s.Instructions(sym) {
					ran++
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

// onPointers calls through pointers: from check what qsort calls back, too, which is no matter to
// its own calls; from once a routine, or the C library's pthread_once, which calls the routine
// back; and relay jumps.
const onPointers = `
	#include <pthread.h>
	#include <stdlib.h>
	#define ROUTINE __attribute__((noipa)) static
	typedef int compare(const void *, const void *);
	static volatile int sum;
	ROUTINE int less(const void *a, const void *b) {
		int x = *(const int *)a, y = *(const int *)b;
		return x < y ? -1 : x > y;
	}
	ROUTINE int more(const void *a, const void *b) {
		return *(const int *)a > *(const int *)b ? -1 : 1;
	}
	ROUTINE int check(compare *f, int *list) {
		qsort(list, 2, sizeof *list, f);
		return f(list, list + 1) > 0 ? sum++ : 0;
	}
	ROUTINE int relay(compare *f, int *list) { return f(list, list + 1); }
	ROUTINE int visit(pthread_once_t *once, void (*f)(void)) {
		if (sum & 1)
			sum += 2;
		return 0;
	}
	typedef int run(pthread_once_t *, void (*)(void));
	ROUTINE int once(run *f) {
		pthread_once_t fresh = PTHREAD_ONCE_INIT;
		return f(&fresh, (void (*)(void))visit) ? sum++ : sum;
	}
	int main(void) {
		for (int i = 0; i < 9; i++) {
			int list[] = {i, 7 - i};
			check(i % 3 ? less : more, list);
			if (relay(i % 2 ? less : more, list) > 0)
				sum++;
			once(i == 4 ? pthread_once : visit);
		}
		return 0;
	}`

// TestCallsThroughPointers: of activations that began at calls through pointers it is known which
// external code began. Where both happened at one call, a profile counts those that it did not, and
// a recording names the place.
func TestCallsThroughPointers(t *testing.T) {
	target := exact.Target{Path: testenv.CompileC(t, onPointers, "-O2", "-pthread"),
		Env: zoo.Env(), FixedAddresses: true}
	want := map[string]uint64{
		"call main check": 9, "return check main": 9,
		"call check less": 6, "return less check": 6,
		"call check more": 3, "return more check": 3,
		"call main relay": 9, "return less main": 4, "return more main": 5,
		"call main once": 9, "return once main": 9,
	}
	file, target := recordOnce(t, target)
	whole := read(t, file)
	followed := follow(t, whole)
	if diff := cmp.Diff(want, betweenRoutines(whole, followed)); diff != "" {
		t.Errorf("of a recording: %s", diff)
	}
	truth, err := bounds.New(whole, followed)
	if err != nil {
		t.Fatal(err)
	}
	truth.TakeTruth(truth)
	leftOut := map[string]string{}
	for a := range truth.Answers(1) {
		if a.LeftOut != "" {
			leftOut[fmt.Sprint(a.Kind, " ", whole.Routines[a.Routine].Name, " ",
				whole.Routines[a.Callee].Name)] = a.LeftOut
		}
	}
	if diff := cmp.Diff(map[string]string{"call once visit": overlapped.Mixed.String(),
		"return once visit": overlapped.Mixed.String()}, leftOut); diff != "" {
		t.Errorf("places that are left out: %s", diff)
	}
	profile := read(t, profileOf(t, target))
	p, err := overlapped.Of(profile)
	if err != nil {
		t.Fatal(err)
	}
	want["call once visit"], want["return visit once"] = 8, 8
	if diff := cmp.Diff(want, betweenRoutines(profile, p)); diff != "" {
		t.Errorf("of a profile: %s", diff)
	}
	counted, err := bounds.New(profile, p)
	if err != nil {
		t.Fatal(err)
	}
	if n := counted.TakeTruth(truth); n > 0 {
		t.Errorf("pairs of paths that the profile does not have ran %d times", n)
	}
	for a := range counted.Answers(1) {
		if isLeftOut := a.LeftOut != ""; isLeftOut != (a.Callee >= 0 &&
			profile.Routines[a.Callee].Name == "visit") || a.Outside > 0 {
			t.Errorf("%+v", a)
		}
	}
}

// follow finds the pairs of a recording, of files that are not where its program was.
func follow(t *testing.T, whole *wpp.Snapshot, files ...string) *overlapped.Profile {
	t.Helper()
	shapes, err := shape.Of(whole, files)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bounds.Follow(whole, shapes.Of)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// profileOf counts paths of a target, and overlapping ones.
func profileOf(t *testing.T, target exact.Target) (file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	file = filepath.Join(t.TempDir(), "profile.wpp")
	if _, err := tracer.CountTo(ctx, file, target, "--overlap", overlapDegree); err != nil {
		t.Fatal(err)
	}
	return file
}

// betweenRoutines is how often pairs ran over calls and returns, by routine.
func betweenRoutines(s *wpp.Snapshot, p *overlapped.Profile) map[string]uint64 {
	all := map[string]uint64{}
	for _, c := range p.Counts {
		kind, _ := overlapped.KindOf(s.Symbols[c.Path].End)
		if kind != overlapped.OverLoop {
			all[fmt.Sprint(kind, " ", routineOf(s, int(c.Path)), " ",
				s.Routines[p.Extensions[c.Extension].Routine].Name)] += c.N
		}
	}
	return all
}

// TestCallsThroughStubs: routines of a library call each other by stubs, as others may take their
// place, and what is called back calls so, too.
func TestCallsThroughStubs(t *testing.T) {
	library := testenv.CompileC(t, `
		#include <stdlib.h>
		int less(const void *a, const void *b) {
			return *(const int *)a < *(const int *)b ? -1 : 1;
		}
		int order(int *list) {
			qsort(list, 2, sizeof *list, less);
			return less(list, list + 1) > 0 ? 3 : 4;
		}
		int both(int *list) { return order(list) + less(list + 1, list); }
		int last(int *list) { return less(list, list); }`, "-O2", "-shared", "-fPIC",
		"-Wl,-soname,libstubs.so")
	dir := filepath.Dir(library)
	named := filepath.Join(dir, "libstubs.so")
	if err := os.Rename(library, named); err != nil {
		t.Fatal(err)
	}
	target := exact.Target{Path: testenv.CompileC(t, `
		int both(int *), last(int *);
		int main(void) {
			int n = 0;
			for (int i = 0; i < 5; i++) {
				int list[] = {i, 3};
				n += both(list) + last(list);
			}
			return n == 0;
		}`, "-O2", "-L"+dir, "-Wl,-rpath,"+dir, "-Wl,--no-as-needed", "-lstubs"), Env: zoo.Env(),
		FixedAddresses: true, Libraries: []string{"libstubs.so"}}
	file, target := recordOnce(t, target)
	whole := read(t, file)
	followed := follow(t, whole, named)
	want := map[string]uint64{
		"call main both": 5, "return both main": 5, "call main last": 5,
		"return less main": 5, // last jumps to it
		"call both order":  5, "return order both": 5, "call both less": 5, "return less both": 5,
		"call order less": 5, "return less order": 5,
	}
	if diff := cmp.Diff(want, betweenRoutines(whole, followed)); diff != "" {
		t.Errorf("of a recording: %s", diff)
	}
	profile := read(t, profileOf(t, target))
	p, err := overlapped.Of(profile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, betweenRoutines(profile, p)); diff != "" {
		t.Errorf("of a profile: %s", diff)
	}
}

package kerneltests

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
	"wpptrace/query/bounds"
	describe "wpptrace/query/report"
)

// Path profiles of programs that run alike each time have the counts of a whole program path, path
// for path: those of the zoo, with threads, signals, exceptions and longjmp, but for those which a
// timer interrupts anywhere.
func TestProfilesOfTheZoo(t *testing.T) {
	cases := slices.DeleteFunc(zooCases(), func(c zoo.Case) bool {
		return c.Program.Tags&zoo.Timer != 0 || c.Program.Tags&(zoo.Long|zoo.Longest) != 0 &&
			!matrix()
	})
	builder, cases := programs(t, cases)
	for _, c := range cases {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path := build(t, builder, c)
			target := targetOf(c, path, "")
			target.FixedAddresses = true
			r := countBoth(t, target, nil)
			by := r.byName(t)
			if isStepped(c) {
				by = r.stepped(t)
				r.entriesAgree(t, by)
			}
			r.pairsAgree(t, nil, by)
		})
	}
}

// So do those of as many threads as a profile counts together.
func TestProfilesOfThreads(t *testing.T) {
	program := testenv.CompileC(t, `
		#include <pthread.h>
		#include <stdlib.h>
		__attribute__((noinline)) static long step(long x) {
			return x % 3 ? x % 5 ? x / 2 : x * 3 + 1 : x - 1;
		}
		static void *work(void *seed) {
			long x = (long)seed;
			for (int i = 0; i < 5000; i++)
				x = step(x + i) & 0xffff;
			return (void *)x;
		}
		int main(int argc, char **argv) {
			pthread_t threads[64];
			int n = atoi(argv[1]);
			for (long i = 0; i < n; i++)
				pthread_create(&threads[i], 0, work, (void *)(i + 1));
			for (int i = 0; i < n; i++)
				pthread_join(threads[i], 0);
			return 0;
		}`, "-O1", "-pthread")
	for _, threads := range []string{"1", "8", "64"} {
		t.Run(threads, func(t *testing.T) {
			countsAgree(t, exact.Target{Path: program, Args: []string{threads}, Env: zoo.Env(),
				FixedAddresses: true}, nil)
		})
	}
}

// So do those of programs as the distribution ships them. At a third of the greatest useful degree
// of each, the bounds of all their pairs are as near to the truth as those of the paper, or nearer.
func TestProfilesOfRealPrograms(t *testing.T) {
	var mu sync.Mutex
	var all bounds.Flow
	t.Cleanup(func() {
		definite := float64(all.Definite)/float64(all.Real) - 1
		potential := float64(all.Potential)/float64(all.Real) - 1
		t.Logf("definite flow %+.1f%%, potential flow %+.1f%%", 100*definite, 100*potential)
		if definite < -0.04 || potential > 0.08 {
			t.Errorf("of %+v: the paper has -4%% and +8%%", all)
		}
	})
	for _, real := range zoo.Reals() {
		t.Run(real.Name, func(t *testing.T) {
			t.Parallel()
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			target := alikeRun(real, path)
			if real.Name == "sqlite3" { // whose code is a library's
				target.Libraries = []string{"libsqlite3*"}
			}
			flow := countsAgree(t, target, aside[real.Name])
			mu.Lock()
			defer mu.Unlock()
			all.Add(flow)
		})
	}
}

// Where events are lost, each path has run as often as it was counted, or more often.
func TestProfilesWithLosses(t *testing.T) {
	lost := uint64(0)
	for _, real := range zoo.Reals() {
		if real.Long {
			continue
		}
		t.Run(real.Name, func(t *testing.T) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience())
			defer cancel()
			whole, target := recordOnce(t, alikeRun(real, path))
			profile := filepath.Join(t.TempDir(), "profile.wpp")
			if _, err := tracer.CountTo(ctx, profile, target, "--ring-size", "4K",
				"--on-overflow", "gap"); err != nil {
				t.Fatal(err)
			}
			s := read(t, profile)
			lost += s.Figures.Lost
			want, got := countsIn(t, read(t, whole), nil), countsIn(t, s, nil)
			counted := uint64(0)
			for name, n := range got {
				isWhole := !strings.HasPrefix(name, aMark) &&
					!strings.Contains(name, "resume-") && !strings.Contains(name, "-cut")
				if isWhole && n > want[name] {
					t.Errorf("%s: counted %d times, ran %d times", name, n, want[name])
				}
				counted += n
			}
			t.Logf("%d events were lost, %d paths were counted", s.Figures.Lost, counted)
		})
	}
	if lost == 0 {
		t.Error("no program has lost events: the buffer is too large")
	}
}

// countsAgree fails the test unless a profile of a target and a recording of it have the same
// counts. Paths of the routines aside are not compared. It returns the flow of the recording.
func countsAgree(t *testing.T, target exact.Target, aside []string) bounds.Flow {
	t.Helper()
	r := countBoth(t, target, aside)
	return r.pairsAgree(t, aside, r.byName(t))
}

// runs are a recording and a profile of runs of a target that were alike.
type runs struct {
	target         exact.Target
	file           string // the recording's
	whole, profile *wpp.Snapshot
}

// countBoth fails the test unless both have the same counts of paths.
func countBoth(t *testing.T, target exact.Target, aside []string) *runs {
	t.Helper()
	file, target := recordOnce(t, target)
	a, b := read(t, file), read(t, profileOf(t, target))
	if !pathprofile.IsProfile(b) || pathprofile.IsProfile(a) || a.Figures.Lost+b.Figures.Lost > 0 {
		t.Fatalf("%d and %d events are lost", a.Figures.Lost, b.Figures.Lost)
	}
	if hits := a.Figures.Hits; len(aside) == 0 && hits != b.Figures.Hits {
		t.Errorf("%d hits, and %d of the profile", hits, b.Figures.Hits)
	}
	want, got := countsIn(t, a, aside), countsIn(t, b, aside)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%d paths, and %d in the profile: %s", len(want), len(got), diff)
	}
	return &runs{target, file, a, b}
}

// pairsAgree fails the test unless both have the pairs of paths that follow from what stands side
// by side in the recording, and the bounds of both hold. It returns the flow of the recording.
func (r *runs) pairsAgree(t *testing.T, aside []string, by beginnings) bounds.Flow {
	t.Helper()
	overlapsAgree(t, r.whole, r.profile, aside, by)
	return boundsHold(t, r.whole, r.profile, aside, by.asKept(t, r.whole))
}

// aMark is what names of marks begin with.
const aMark = "mark: "

func read(t *testing.T, file string) *wpp.Snapshot {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// countsIn is how often each path ran. Partial paths, whose numbers are each snapshot's own, are
// named by where they begin and end.
func countsIn(t *testing.T, s *wpp.Snapshot, aside []string) map[string]uint64 {
	t.Helper()
	counts, err := query.NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	labels, all := describe.NewLabels(s), map[string]uint64{}
	for i := range s.Symbols {
		n := counts.Symbol(uint32(i))
		if n == 0 || slices.Contains(aside, routineOf(s, i)) {
			continue
		}
		name := fmt.Sprint(aMark, s.Symbols[i].Mark)
		if p := &s.Symbols[i]; !p.IsMark {
			l := labels.Of(uint32(i))
			name = fmt.Sprintf("%s %s#%d %s-%s %s-%s %d instructions", l.Image, l.Routine,
				min(l.Path, s.Routines[p.Routine].Paths), l.Start, l.End, l.First, l.Last,
				*l.Instructions)
		}
		all[name] += n
	}
	if len(all) == 0 && len(s.Symbols) > 0 {
		t.Error("nothing ran")
	}
	return all
}

func routineOf(s *wpp.Snapshot, sym int) string {
	if r := s.RoutineOf(uint32(sym)); r != nil {
		return r.Name
	}
	return ""
}

package kerneltests

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/interesting"
	"wpptrace/internal/pathcount"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/target"
	"wpptrace/query"
)

// Interesting paths that are counted in the kernel have the counts of a whole program path of a run
// that is alike, and so have the others of each of their routines together: all that ran, and the
// hottest. A path that a signal interrupts is two parts in the recording, and counts, even if it is
// never gone on with: there are so many more at most. Those of the zoo, with threads, signals,
// exceptions and longjmp, but for those which a timer interrupts anywhere.
func TestInterestingOfTheZoo(t *testing.T) {
	met := map[string]bool{} // by program: one flavour of each
	cases := slices.DeleteFunc(zooCases(), func(c zoo.Case) bool {
		again := met[c.Program.Name]
		met[c.Program.Name] = true
		return !matrix() && (again || c.Program.Tags&(zoo.Long|zoo.Longest) != 0) ||
			c.Program.Tags&zoo.Timer != 0
	})
	builder, cases := programs(t, cases)
	for i, c := range cases {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path := build(t, builder, c)
			target := targetOf(c, path, "")
			target.FixedAddresses = true
			var more [][]string
			if i%5 == 0 { // those that never ran, too
				more = append(more, []string{"--others", "count", "-F", ".", "--all-paths"})
			}
			interestingAgree(t, target, nil, more...)
		})
	}
}

// So do those of programs as the distribution ships them.
func TestInterestingOfRealPrograms(t *testing.T) {
	for _, real := range zoo.Reals() {
		t.Run(real.Name, func(t *testing.T) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			interestingAgree(t, alikeRun(real, path), aside[real.Name])
		})
	}
}

// A counted is a path of the executable.
type counted struct {
	entry, path uint64
}

func interestingAgree(t *testing.T, target exact.Target, aside []string, more ...[]string) {
	t.Helper()
	within := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), patience())
		t.Cleanup(cancel)
		return ctx
	}
	target.Libraries = nil
	whole, target := recordOnce(t, target)
	ran, names := ranOf(t, whole)
	for _, flags := range append([][]string{{"--others", "count"},
		{"--others", "count", "--hot", fmt.Sprint(max(len(ran)/10, 1))},
		{"--others", "ignore", "--hot", fmt.Sprint(max(len(ran)/4, 1))}}, more...) {
		r, err := tracer.CountSome(within(), whole, target, flags...)
		if errors.Is(err, exact.ErrRefused) {
			t.Log(err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		others := map[uint64]uint64{}
		for at, n := range ran {
			others[at.entry] += n
		}
		differ := 0
		check := func(what string, entry, want, got uint64) {
			if want <= got && got <= want+r.Amid || slices.Contains(aside, names[entry]) {
				return
			}
			if differ++; differ < 5 {
				t.Errorf("%v: %s of %s at %x: %d, counted %d", flags, what, names[entry], entry, want,
					got)
			}
		}
		for _, p := range r.Paths {
			at := counted{entry: p.Entry, path: p.Path}
			others[p.Entry] -= ran[at]
			check(fmt.Sprint("path ", p.Path), p.Entry, ran[at], p.Count)
		}
		for _, o := range r.Others {
			check("others", o.Entry, others[o.Entry], o.Count)
		}
		if differ > 0 || r.UnknownHits > 0 || r.LostHits > 0 {
			t.Errorf("%v: %d of %d paths and %d routines differ; %d hits not known, %d lost", flags,
				differ, len(r.Paths), len(r.Others), r.UnknownHits, r.LostHits)
		}
		t.Logf("%v: %d paths, %d not told apart, others of %d routines and not of %d, by %d probes",
			flags, len(r.Paths), r.NotTold, len(r.Others), r.OthersNotCounted, r.Probes)
	}
}

// ranOf reads how often each path of the executable ran, and the names of routines by entry.
func ranOf(t *testing.T, file string) (map[counted]uint64, map[uint64]string) {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := query.NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	ran, names := map[counted]uint64{}, map[uint64]string{}
	for i := range s.Symbols {
		n, p := counts.Symbol(uint32(i)), &s.Symbols[i]
		if n == 0 || p.IsMark {
			continue
		}
		r := &s.Routines[p.Routine]
		if r.Image == 0 && p.Path < r.Paths { // no part of one
			ran[counted{entry: r.Entry, path: p.Path}] += n
			names[r.Entry] = r.Name
		}
	}
	return ran, names
}

// busy has a routine of 2^30 possible paths, recursion, a switch and longjmp, in some threads. With
// a second argument, signals interrupt these: a timer's, anywhere; and every busyRounds rounds in
// the midst of that routine those of a page that may not be read, busyFaults in the same place.
// Handlers run on the threads' own stacks, on ones below these and on ones above.
const (
	busyRounds, busyFaults = 4, 12
	busy                   = `
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#define TWICE(x) x x
#define NOINLINE __attribute__((noinline))
#define MOST 64
#define STACK 65536
#define STEPS if (bits & 1) *sum += 3; bits >>= 1; if (bits & 2) *sum ^= bits; bits >>= 1; \
	if (bits & 1) *sum += 7; bits >>= 1; if (bits & 4) *sum -= 5; bits >>= 1;
NOINLINE static long many(unsigned long bits, volatile long *sum, volatile long *page) {
	TWICE(TWICE(STEPS))
	*sum += *page;
	TWICE(TWICE(STEPS))
	return *sum;
}
NOINLINE static long deep(long x, jmp_buf out) {
	if (x == 13)
		longjmp(out, 1);
	if (x < 2)
		return 1;
	return x & 1 ? deep(x - 2, out) + 1 : deep(x / 2, out) * 2;
}
NOINLINE static int choose(int x) {
	switch (x & 7) {
	case 0: return x * 3;
	case 1: return x - 4;
	case 2: return x ^ 9;
	case 3: return x / 7;
	case 5: return choose(x >> 1);
	default: return x;
	}
}
static void handle(long ticks) {
	static volatile long sum;
	jmp_buf out;
	if (!setjmp(out))
		sum += deep(choose(ticks) & 15, out);
}
static void on_tick(int number) {
	static volatile long ticks;
	handle(ticks++);
}
static void on_fault(int number, siginfo_t *info, void *context) {
	static __thread long faults;
	handle(faults++);
	if (faults % FAULTS == 0 && mprotect(info->si_addr, 1, PROT_READ))
		abort();
}
static int interrupted;
static char below[MOST][STACK], *above;
static void *work(void *seed) {
	unsigned long x = (long)seed;
	stack_t handlers = {.ss_sp = x % 3 == 1 ? below[x % MOST] : &above[x % MOST * STACK],
		.ss_size = STACK};
	volatile long sum = 0;
	long *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x % 3 && sigaltstack(&handlers, 0))
		abort();
	for (int i = 0; i < 400; i++) {
		jmp_buf out;
		if (i % ROUNDS == 0 && mprotect(page, 1, interrupted ? PROT_NONE : PROT_READ))
			abort();
		x = x * 6364136223846793005 + 1442695040888963407;
		many(x >> 30, &sum, page);
		if (!setjmp(out))
			sum += deep(x >> 58, out);
		sum += choose(x >> 50);
	}
	return (void *)sum;
}
int main(int argc, char **argv) {
	pthread_t threads[MOST];
	int n = atoi(argv[1]);
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	sigset_t ticks;
	above = mmap(0, MOST * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGALRM, &tick, 0);
	sigaction(SIGSEGV, &fault, 0);
	raise(SIGALRM);
	interrupted = argc > 2;
	if (interrupted)
		setitimer(ITIMER_REAL, &often, 0);
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], 0, work, (void *)(i + 1));
	sigemptyset(&ticks);
	sigaddset(&ticks, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &ticks, 0); /* they are for those at work, not for who waits */
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], 0);
	return 0;
}`
)

func compileBusy(t *testing.T) (path string) {
	return testenv.CompileC(t, busy, "-O1", "-pthread", "-Wl,--build-id",
		fmt.Sprintf("-DROUNDS=%d", busyRounds), fmt.Sprintf("-DFAULTS=%d", busyFaults))
}

func TestInterestingOfThreads(t *testing.T) {
	program := compileBusy(t)
	for _, threads := range []string{"1", "8", "64"} {
		t.Run(threads, func(t *testing.T) {
			interestingAgree(t, exact.Target{Path: program, Args: []string{threads}, Env: zoo.Env(),
				FixedAddresses: true}, nil)
		})
	}
}

// Paths that signals interrupt all the time are gone on with: they count as without signals.
func TestInterestingWithSignals(t *testing.T) {
	const threads = 4
	alike := exact.Target{Path: compileBusy(t), Args: []string{fmt.Sprint(threads)},
		Env: zoo.Env(), Dir: t.TempDir()}
	whole := filepath.Join(t.TempDir(), "whole.wpp")
	if _, err := tracer.RecordTo(t.Context(), whole, alike); err != nil {
		t.Fatal(err)
	}
	ran, names := ranOf(t, whole)
	alike.Args = append(alike.Args, "interrupted")
	for range 3 {
		r, err := tracer.CountSome(t.Context(), whole, alike)
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for _, p := range r.Paths {
			if name := names[p.Entry]; name != "many" && name != "work" {
				continue // handlers run it as well
			}
			compared++
			if want := ran[counted{p.Entry, p.Path}]; p.Count != want {
				t.Errorf("path %d of %s: %d, counted %d", p.Path, names[p.Entry], want, p.Count)
			}
		}
		if r.UnknownHits > 0 || r.LostHits > 0 {
			t.Errorf("%d hits not known, %d lost", r.UnknownHits, r.LostHits)
		}
		const faults = threads * 400 / busyRounds * busyFaults
		if compared < 1000 || r.Amid < faults {
			t.Errorf("%d paths, %d interrupted", compared, r.Amid)
		}
		t.Logf("%d paths, interrupted %d times, by faults %d", compared, r.Amid, faults)
	}
}

// Of a process that runs already, what is counted is all that it does in the time, but for a path
// at the beginning and one at the end.
func TestInterestingInMidRun(t *testing.T) {
	program := testenv.CompileC(t, `
		#include <stdlib.h>
		volatile long sum;
		__attribute__((noinline)) static void turn(long i) {
			if (i % 3 == 0)
				sum += 1;
			else if (i % 3 == 1)
				sum ^= 5;
			else
				sum -= 2;
		}
		int main(int argc, char **argv) {
			long n = atol(argv[1]);
			for (long i = 0; i < n; i++)
				turn(i);
			return 0;
		}`, "-O1", "-Wl,--build-id")
	whole := filepath.Join(t.TempDir(), "whole.wpp")
	_, err := tracer.RecordTo(t.Context(), whole, exact.Target{Path: program, Args: []string{"999"},
		Env: zoo.Env(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "1000000000000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	defer func() { _ = command.Process.Kill() }()
	for range 5 {
		p, err := target.Open(command.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pathcount.Run(t.Context(), pathcount.Options{Process: p,
			Paths:    interesting.Choice{Snapshot: whole, Others: interesting.CountOthers},
			Duration: 300 * time.Millisecond})
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		var turns []uint64
		for _, x := range r.Paths {
			if x.Routine == "turn" {
				turns = append(turns, x.Count)
			}
		}
		if len(turns) != 3 || slices.Max(turns) < 100 || slices.Max(turns)-slices.Min(turns) > 1 ||
			r.Threads != 1 || r.LostHits > 0 || r.UnknownHits > 2 {
			t.Errorf("%+v", r)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// probesOf counts the kernel's links that put probes into a process.
func probesOf(t *testing.T, pid int) int {
	t.Helper()
	for {
		n, err := countProbes(pid)
		if err == nil {
			return n
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EAGAIN) {
			// a link that comes or goes just now
			t.Fatal(err)
		}
	}
}

func countProbes(pid int) (n int, err error) {
	var links link.Iterator
	defer links.Close()
	for links.Next() {
		info, err := links.Link.Info()
		if err != nil {
			return 0, err
		}
		if probes := info.UprobeMulti(); probes != nil {
			if of, ok := probes.Pid(); ok && int(of) == pid {
				n++
			}
		}
	}
	return n, links.Err()
}

// A process at work notices nothing when wpptrace is killed at any moment: before it attaches,
// while it does, while it records, between windows.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := [][]string{{}, {"--overhead", "20", "--window", "1ms"},
		{"--on-overflow", "stop", "--ring-size", "4K"}, {"-F", "^(read|add|eval)"},
		{"profile"}, {"profile", "--overhead", "20", "--window", "1ms"}}
	s := testenv.StartServer(t)
	var questions []int
	var got []string
	probed := 0
	kills := amount(8, 200)
	for i := range kills {
		kind := kinds[i%len(kinds)]
		w := startTracer(t, append(slices.Clone(kind), "-p", strconv.Itoa(s.PID()), "-o", "x.wpp",
			"--max-slowdown", "0")...)
		work := func() {
			n := 1 + random.IntN(50)
			questions, got = append(questions, n), append(got, s.Ask(n))
		}
		if i%3 > 0 { // the moment is one of recording, not of whatever comes first
			w.expect("recording process")
		}
		for due := time.Now().Add(time.Duration(random.IntN(1000)) *
			time.Millisecond); time.Now().Before(due); {
			work()
		}
		if probesOf(t, s.PID()) > 0 {
			probed++
		}
		w.signal(unix.SIGKILL)
		w.cmd.Wait()
		testenv.Eventually(t, func() bool { return probesOf(t, s.PID()) == 0 },
			"kill %d, %q: no link is left", i, kind)
		s.BecomesClean()
		testenv.Eventually(t, func() bool { return stateOf(t, s.PID()) != 'T' },
			"kill %d, %q: the server goes on", i, kind)
	}
	s.End()
	if !slices.Equal(got, answers(t, questions...)) {
		t.Error("the server did not answer as when nobody traces it")
	}
	t.Logf("killed %d times, %d of them while probes stood", kills, probed)
	if probed < kills/4 {
		t.Errorf("only %d of %d kills came while probes stood: the test does not test", probed,
			kills)
	}
}

// Nobody need read what wpptrace says, or all of it: the recording is kept, and a command's status.
func TestNobodyReads(t *testing.T) {
	busy := testenv.Start(t, exec.Command(compileRandomPaths(t)))
	for _, c := range []struct {
		name   string
		args   []string
		status int
	}{
		{"process", []string{"-p", strconv.Itoa(busy.PID()), "-d", "300ms", "--overhead", "0",
			"--max-slowdown", "0"}, 0},
		{"command", []string{"--", "sh", "-c", "sleep 0.3; exit 7"}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			tracer := exec.Command("wpptrace", append([]string{"-o", "x.wpp"}, c.args...)...)
			tracer.Dir, tracer.Stdout, tracer.Stderr = t.TempDir(), w, w
			if tracer.Run(); tracer.ProcessState.ExitCode() != c.status {
				t.Errorf("it ended with %v, want status %d", tracer.ProcessState, c.status)
			}
			w.Close()
			if _, err := store.ReadFile(filepath.Join(tracer.Dir, "x.wpp")); err != nil {
				t.Error(err)
			}
		})
	}
	busy.IsClean()
}

// busyThreads makes threads, some at a time, each of which calls leaf so many times and lives until
// all of these have.
const busyThreads = `
#include <pthread.h>
#include <stdlib.h>
static int calls;
static pthread_barrier_t done;
__attribute__((noinline)) static unsigned leaf(unsigned x) { return x * 5 + 1; }
static void *work(void *arg)
{
	volatile unsigned sum = 0;
	for (int i = 0; i < calls; i++)
		sum = leaf(sum);
	pthread_barrier_wait(&done);
	return arg;
}
int main(int argc, char **argv)
{
	int all = atoi(argv[1]), atOnce = atoi(argv[2]);
	calls = atoi(argv[3]);
	pthread_barrier_init(&done, 0, atOnce);
	pthread_t *t = calloc(atOnce, sizeof(*t));
	for (int begun = 0; begun < all; begun += atOnce) {
		for (int i = 0; i < atOnce; i++)
			if (pthread_create(&t[i], 0, work, 0))
				return 2;
		for (int i = 0; i < atOnce; i++)
			pthread_join(t[i], 0);
	}
	return 0;
}`

// Of threads, however many, busy and short ones, each is recorded whole.
func TestThreadStorms(t *testing.T) {
	program := testenv.CompileC(t, busyThreads, "-O1", "-pthread")
	for _, c := range []struct{ name, threads, atOnce, calls string }{
		{"busy ones", "32", "32", strconv.Itoa(amount(20_000, 200_000))},
		{"short ones", strconv.Itoa(amount(2_000, 10_000)), "20", "7"},
		{"more than have slots", "1200", "1200", "7"}, // bpf/wpptrace.bpf.c: SLOTS
	} {
		t.Run(c.name, func(t *testing.T) {
			w := startTracer(t, "-q", "-o", "x.wpp", "--", program, c.threads, c.atOnce, c.calls)
			w.wait(0)
			s, err := store.ReadFile(w.path("x.wpp"))
			if err != nil {
				t.Fatal(err)
			}
			checkRecording(t, w, "x.wpp", 1)
			working := 0
			for _, thread := range s.Threads {
				if n := leaves(s, thread.Grammar); strconv.FormatUint(n, 10) == c.calls {
					working++
				} else if n != 0 {
					t.Errorf("thread %d called leaf %d times, not %s times", thread.TID, n, c.calls)
				}
			}
			if strconv.Itoa(working) != c.threads {
				t.Errorf("%d threads called leaf, not %s", working, c.threads)
			}
		})
	}
}

// leaves counts the paths of leaf, which has but one.
func leaves(s *wpp.Snapshot, g *wpp.Grammar) (n uint64) {
	for symbol, count := range symbolCounts(g) {
		if !s.Symbols[symbol].IsMark && s.RoutineOf(symbol).Name == "leaf" {
			n += count
		}
	}
	return n
}

// A reader that stops at any moment for any time: what it misses is counted, or there is nothing to
// miss.
func TestStalledReader(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		lost  bool
	}{
		{"gap", []string{"--ring-size", "4K", "--on-overflow", "gap"}, true},
		{"stop", []string{"--ring-size", "4K", "--on-overflow", "stop"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			const rounds = 8
			questions := make([]int, rounds)
			for i := range questions {
				questions[i] = 20
			}
			want := answers(t, questions...)
			s := testenv.StartServer(t)
			w := startTracer(t,
				append([]string{"-q", "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown",
					"0", "--json"}, c.flags...)...)
			testenv.Eventually(t, func() bool { return probesOf(t, s.PID()) > 0 }, "probes stand")
			time.Sleep(100 * time.Millisecond)
			ended, stalled := make(chan struct{}), make(chan struct{})
			go func() { // stalls it as long as the server is at work
				defer close(stalled)
				for {
					for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
						w.cmd.Process.Signal(sig)
						time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
					}
					select {
					case <-ended:
						return
					default:
					}
				}
			}()
			for i, n := range questions {
				if got := s.Ask(n); got != want[i] {
					t.Errorf("the server answered %q, untraced %q", got, want[i])
				}
			}
			close(ended)
			<-stalled
			w.signal(os.Interrupt)
			w.wait(0)
			s.IsClean()
			s.End()
			r, err := store.ReadFile(w.path("x.wpp"))
			if err != nil {
				t.Fatal(err)
			}
			f := r.Figures
			if f.Anomalies != 0 || f.Hits < 10_000 || (f.Lost > 0) != c.lost ||
				(f.Gaps > 0) != c.lost {
				t.Errorf("%d hits, %d lost in %d gaps, %d anomalies; lost are to be some: %v",
					f.Hits, f.Lost, f.Gaps, f.Anomalies, c.lost)
			}
		})
	}
}

// Windows are opened and closed again and again: nothing is left of one that has been closed, and
// the process notices none.
func TestNothingLeaksFromWindows(t *testing.T) {
	const few = 5 // by then all that stays has been made
	program := testenv.CompileC(t, busyThreads, "-O1", "-pthread")
	busy := exec.Command(program, "1000000", "4", "2000000000")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Process.Kill(); busy.Wait() })
	w := startTracer(t, "-v", "-p", strconv.Itoa(busy.Process.Pid), "-o", "x.wpp", "--overhead",
		"200", "--window", "1ms")
	windows := func(n int) (descriptors int, memory uint64) {
		for range n {
			w.expect("a window has ended")
		}
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), resident(t, w.cmd.Process.Pid)
	}
	descriptors, memory := windows(few)
	moreDescriptors, moreMemory := windows(amount(10, 1000))
	w.signal(os.Interrupt)
	w.wait(0)
	if d := moreDescriptors - descriptors; d < -1 || d > 1 { // the window that is open has one
		t.Errorf("%d descriptors after %d windows, %d later", descriptors, few, moreDescriptors)
	}
	if moreMemory > memory+32<<20 {
		t.Errorf("%d MiB after %d windows, %d MiB later", memory>>20, few, moreMemory>>20)
	}
	if n := probesOf(t, busy.Process.Pid); n > 0 {
		t.Errorf("%d links are left", n)
	}
	checkRecording(t, w, "x.wpp", 1)
}

// resident is the memory of a process, bytes.
func resident(t *testing.T, pid int) uint64 {
	t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var all, resident uint64
	if _, err := fmt.Sscan(string(statm), &all, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * uint64(os.Getpagesize())
}

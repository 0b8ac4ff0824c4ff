package record

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
	"wpptrace/query/report"
)

// With a ring buffer of a page and a reader that sleeps, most is lost: each thread knows how much,
// and says where.
func TestLoss(t *testing.T) { checkLosses(t, recordWithLosses(t)) }

// What other threads lose than those that are recorded is no loss.
func TestLossOfOtherThreads(t *testing.T) {
	const another = 1
	r := recordWithLosses(t, another)
	if m, err := r.session.Counters().Metrics(); err != nil || m.LostHits == 0 {
		t.Errorf("%v lost, %v: the test does not test", m, err)
	}
	if f := r.figures(); f.Lost != 0 || f.Gaps != 0 {
		t.Errorf("the figures have %d lost in %d gaps", f.Lost, f.Gaps)
	}
	if l := r.losses(); l.Err != nil || l.Events != 0 || l.Places != 0 {
		t.Errorf("%+v", l)
	}
}

func recordWithLosses(t *testing.T, tids ...int) *Recorder {
	t.Helper()
	s := startServer(t)
	r := recordSubject(t, s, tids...)
	for range 3 {
		s.Ask(20) // nobody reads meanwhile
		if err := r.threads.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.IsClean()
	s.End()
	return r
}

func checkLosses(t *testing.T, r *Recorder) {
	t.Helper()
	m, err := r.session.Counters().Metrics()
	if err != nil {
		t.Fatal(err)
	}
	var lost uint64
	for _, th := range r.threads.all {
		if th.hits != th.received+th.lost {
			t.Errorf("thread %d: %d hits, but %d received and %d lost", th.id, th.hits, th.received,
				th.lost)
		}
		if th.received == 0 || th.lost == 0 || th.gaps == 0 {
			t.Errorf("thread %d: %d received, %d lost in %d gaps: the test does not test", th.id,
				th.received, th.lost, th.gaps)
		}
		lost += th.lost
	}
	if m.LostHits != lost {
		t.Errorf("the kernel lost %d hits, the threads %d", m.LostHits, lost)
	}
	s, err := r.snapshots.snapshot()()
	if err != nil {
		t.Fatal(err)
	}
	if s.Figures.Lost != lost || s.Figures.Anomalies != 0 {
		t.Errorf("the snapshot says that %d were lost, not %d; %d anomalies", s.Figures.Lost, lost,
			s.Figures.Anomalies)
	}
	if n := countGaps(t, s); n != int(s.Figures.Gaps) {
		t.Errorf("%d gaps in the stream, %d in the figures", n, s.Figures.Gaps)
	}
	if l := r.losses(); l.Err != nil || l.Events != lost || l.Places == 0 {
		t.Errorf("%+v", l)
	}
}

func countGaps(t *testing.T, s *wpp.Snapshot) int {
	var dump strings.Builder
	if err := report.Dump(&dump, s, report.Paths, report.Whole()); err != nil {
		t.Fatal(err)
	}
	return strings.Count(dump.String(), "#gap ")
}

// What a thread lost that came to its end in a window once had nowhere to go when the recording
// ended.
func TestLossOfAThreadThatEndsInAWindow(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned s;
__attribute__((noinline)) static unsigned work(unsigned s, unsigned i) {
	return s % 7 ? s * 31 + i : s / 3 + 1; }
static void *run(void *n) { for (long i = 0; i < (long)n; i++) s = work(s, i); return 0; }
int main(void)
{
	char line[32];
	while (fgets(line, sizeof line, stdin)) {
		pthread_t t;
		pthread_create(&t, 0, run, (void *)atol(line));
		pthread_join(t, 0);
		printf("%u\n", s);
		fflush(stdout);
	}
	return 7;
}`, "-O1", "-pthread")))
	r := recordSubject(t, s)
	s.Ask(20_000) // nobody reads meanwhile
	setWindows(r, target.Times{}, 1)
	r.windows.begin()
	if err := r.windows.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.IsClean()
	s.End()
	m, err := r.session.Counters().Metrics()
	if f := r.figures(); err != nil || m.LostHits == 0 || f.Lost != m.LostHits {
		t.Errorf("the kernel lost %d hits (%v), the figures say %d", m.LostHits, err, f.Lost)
	}
}

// TestChangeIsCharged: what a busy process does not do while probes go in or out is paid from the
// budget; one that has nothing to do pays nothing.
func TestChangeIsCharged(t *testing.T) {
	s := startServer(t)
	r := recordSubject(t, s)
	exe, err := r.options.Process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	for load, charged := range map[float64]bool{1: true, 2: true, 0: false} {
		used, err := r.usage.used()
		if err != nil {
			t.Fatal(err)
		}
		setWindows(r, used, load)
		err = r.windows.change(load, func() error { // in which it does nothing
			return errors.Join(r.session.Pause(), r.session.Attach(exe))
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.windows.schedule.Overhead(); (got > 0) != charged {
			t.Errorf("at load %v, the budget is charged with %v of what it did", load, got)
		}
	}
	if err := r.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// setWindows has a recording account for a budget.
func setWindows(r *Recorder, used target.Times, load float64) {
	schedule := overhead.NewScheduler(0.05, overhead.Limits{Window: DefaultWindow}, used, load, nil)
	r.windows = &windows{schedule: schedule, usage: r.usage, threads: r.threads,
		division: r.divisionBy(schedule), attach: r.images.attachAgain, handle: r.handle}
}

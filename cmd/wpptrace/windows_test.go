package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/messages"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/report"
)

// work is a program that never ends and does the same again and again.
const work = `while :; do
	for ((i = 0; i < 50; i++)); do
		s=$(((s * 31 + i) % 1000003))
		case $s in *7) t=$t$s ;; *) t=${t%?} ;; esac
	done
done`

func startWork(t *testing.T) (pid int) {
	t.Helper()
	cmd := exec.Command("bash", "-c", work)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid
}

// recordWindows records a process until so many windows have ended.
func recordWindows(t *testing.T, pid, windows int, flags ...string) (*wpp.Snapshot, *tracer) {
	t.Helper()
	w := startTracer(t, append([]string{"-v", "-p", strconv.Itoa(pid), "-o", "x.wpp"}, flags...)...)
	w.expect("recording process")
	for range windows {
		w.expect("a window has ended")
	}
	w.signal(os.Interrupt)
	w.wait(0)
	s, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// A busy process is traced in windows with gaps between them, and everything says so.
func TestWindows(t *testing.T) {
	const most = 4
	s, w := recordWindows(t, startWork(t), most-1, "--overhead", "20", "--window", "5ms")
	f := s.Figures
	if f.Windows < most-1 || f.Windows > most || !(f.Sampled > 0 && f.Sampled < 0.9) ||
		f.Lost != 0 || f.Gaps != 0 || f.Anomalies != 0 {
		t.Errorf("figures %+v", f)
	}
	gaps := uint64(0)
	for i, n := range symbolCounts(s.Threads[0].Grammar) {
		if m := &s.Symbols[i]; m.IsMark && m.Mark == ops.Gap {
			gaps += n
		}
	}
	if gaps == 0 || gaps > f.Windows { // no gap comes after a window in which it did not run
		t.Errorf("%d gaps in %d windows", gaps, f.Windows)
	}
	for _, want := range []string{
		"to trace all of it costs more than --overhead 20% of its CPU time: it is traced in " +
			"windows of 5ms from here on",
		fmt.Sprintf("traced in %d windows, ", f.Windows),
	} {
		if !strings.Contains(w.errs.String(), want) {
			t.Errorf("%q is not in:\n%s", want, w.errs.String())
		}
	}
	// of how little CPU time that is a share may be said, too
	held := fmt.Sprintf("%.3g", float64(f.HeldUp)/float64(time.Millisecond))
	took := regexp.MustCompile("; tracing took " + regexp.QuoteMeta(text.Share(f.SlowDown-1)) +
		" more(, of [0-9.]+ ms of CPU time)?, and held it up for " + regexp.QuoteMeta(held) +
		" ms at a time at most\n")
	if !took.MatchString(w.errs.String()) {
		t.Errorf("%v is not in:\n%s", took, w.errs.String())
	}
	// hits take most of the time of a window of such a program, and what they leave is its own
	if f.SampledMost < f.Sampled || f.SampledLeast > f.Sampled || !strings.Contains(
		w.stdout.String(), fmt.Sprintf(" in %d windows: numbers are those of the windows\n",
			f.Windows)) {
		t.Errorf("the report does not mention windows:\n%s", w.stdout.String())
	}
}

// TestLoopsAreSeenInWindows: a window that begins and ends amid a loop, whose rounds registers
// count, has seen it all the same.
func TestLoopsAreSeenInWindows(t *testing.T) {
	const counts = `
		static volatile long no;
		__attribute__((noinline)) static long count(long n) {
			long i = 0, s = 0;
			if (n == no) return 0;
			do { s += 3; __asm__ volatile("" : "+r"(s)); } while (++i != n);
			return s;
		}
		int main(int c, char **v) {
			volatile long sum = 0;
			for (;;) sum += count(c << 27);
		}`
	cmd := exec.Command(testenv.CompileC(t, counts, "-O2"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s, _ := recordWindows(t, cmd.Process.Pid, 2, "--overhead", "20", "--window", "5ms")
	rounds := uint64(0)
	for i, n := range symbolCounts(s.Threads[0].Grammar) {
		if r := s.RoutineOf(uint32(i)); r != nil && r.Name == "count" {
			rounds += n
		}
	}
	if rounds < 100 {
		t.Errorf("%d rounds of the loop that runs all the time", rounds)
	}
}

// TestAllPhasesAreInWindows: what a process does long after it has woken up is in windows as often
// as it is done.
func TestAllPhasesAreInWindows(t *testing.T) {
	if os.Getenv("WPPTRACE_SOAK") == "" {
		t.Skip("WPPTRACE_SOAK is not set, and it takes a machine that does nothing else: see " +
			"make soak")
	}
	const phases = `
		#include <unistd.h>
		static volatile unsigned x;
		#define PHASE(name) __attribute__((noinline)) static void name(void) { \
			for (int i = 0; i < 700000; i++) x += (x >> 3 & 1) + i; }
		PHASE(early)
		PHASE(late)
		int main(void) { for (;;) { early(); late(); usleep(4000); } }`
	cmd := exec.Command(testenv.CompileC(t, phases, "-O1"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s, _ := recordWindows(t, cmd.Process.Pid, 32, "--overhead", "90", "--window", "1ms")
	paths := map[string]float64{}
	for i, n := range symbolCounts(s.Threads[0].Grammar) {
		if r := s.RoutineOf(uint32(i)); r != nil {
			paths[r.Name] += float64(n)
		}
	}
	t.Logf("paths: %v", paths)
	if late := paths["late"] / (paths["early"] + paths["late"]); late < 0.22 || late > 0.78 {
		t.Errorf("%.2f of the paths are in the second half of what it does", late)
	}
}

// symbolCounts counts how often each symbol comes in what the grammar stands for.
func symbolCounts(g *wpp.Grammar) map[uint32]uint64 {
	counts := map[uint32]uint64{}
	for sym := range g.Expand(0) {
		counts[sym]++
	}
	return counts
}

// A server that is traced in windows answers and ends as one that nobody traces, and nothing is
// left in it.
func TestWindowsAreHarmless(t *testing.T) {
	questions := []int{2000, 50, 3000, 10}
	want := answers(t, questions...)
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--overhead", "5", "--window",
		"1ms")
	w.expect("recording process")
	var got []string
	for _, n := range questions {
		got = append(got, s.Ask(n))
	}
	w.signal(os.Interrupt)
	w.wait(0)
	s.IsClean()
	s.End()
	if !slices.Equal(got, want) {
		t.Errorf("the server answered %q, untraced %q", got, want)
	}
}

// What the budget allows is traced without a gap.
func TestOneWindowWhereItIsCheap(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-d", "2s", "-o", "x.wpp", "-F",
		"^read_builtin$", "--overhead", "50")
	w.expect("recording process")
	for range 50 {
		s.Ask(1000) // most of it is not traced
	}
	w.wait(0)
	if strings.Contains(w.errs.String(), "windows") {
		t.Errorf("there were windows: %s", w.errs.String())
	}
	if stat := checkRecording(t, w, "x.wpp", 50); stat.Windows != 0 || stat.Sampled != 1 {
		t.Errorf("%d windows, %v sampled", stat.Windows, stat.Sampled)
	}
	s.End()
}

// calls makes some ten million calls a second, and says after so many how many there were and what
// CPU time they took, ns. Its routines are hot by rank.
const calls = `
#include <stdio.h>
#include <time.h>
#define ROUTINE(n) __attribute__((noinline)) static unsigned f##n(unsigned x) { \
	return x & n + 1 ? x * 5 + n : x / 3 + 1; }
ROUTINE(0) ROUTINE(1) ROUTINE(2) ROUTINE(3) ROUTINE(4) ROUTINE(5) ROUTINE(6) ROUTINE(7) ROUTINE(8) ROUTINE(9) ROUTINE(10) ROUTINE(11)
static unsigned (*const routines[])(unsigned) = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11};
volatile unsigned sink;
int main(void)
{
	unsigned x = 1, seed = 1;
	for (unsigned long n = 0;;) {
		for (int i = 0; i < 1000000; i++) {
			seed = seed * 1103515245 + 12345;
			unsigned which = __builtin_ctz(seed >> 8 | 1 << 11);
				/* each half as often as the one before */
			x = routines[which](x + seed);
			for (volatile int idle = 0; idle < 20; idle++)
				;
		}
		struct timespec t;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		sink = x;
		printf("%lu %lu\n", n += 1000000, t.tv_sec * 1000000000ul + t.tv_nsec);
		fflush(stdout);
	}
}`

// startCalls builds calls and starts it. Each line of its output goes to lines.
func startCalls(t testing.TB, lines func(text string)) (pid int) {
	t.Helper()
	path := t.TempDir() + "/calls"
	gcc := exec.Command("gcc", "-O1", "-x", "c", "-", "-o", path)
	gcc.Stdin = strings.NewReader(calls)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines(scan.Text())
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); <-done; cmd.Wait() })
	return cmd.Process.Pid
}

// Windows show the subpaths that are hot in the whole, with the budget that is usual.
func TestHotInWindows(t *testing.T) {
	pid := startCalls(t, func(string) {})
	w := startTracer(t, "-p", strconv.Itoa(pid), "-d", "1s", "--max-slowdown", "0", "-q", "-o",
		"whole.wpp")
	w.wait(0)
	whole, err := store.ReadFile(w.path("whole.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	want := hottestOf(t, whole)
	for range amount(1, 5) {
		sampled, _ := recordWindows(t, pid, 5)
		got, common := hottestOf(t, sampled), 0
		for _, p := range got {
			if slices.Contains(want, p) {
				common++
			}
		}
		if len(want) != messages.Hottest || common < messages.Hottest-1 {
			t.Errorf("%d of %d hottest subpaths are found in %d windows:\n%q\nthey are\n%q", common,
				len(want), sampled.Figures.Windows, got, want)
		}
	}
}

// hottestOf lists the hottest subpaths, each as its routines and paths.
func hottestOf(t *testing.T, s *wpp.Snapshot) (list []string) {
	t.Helper()
	q := query.DefaultHotQuery()
	q.Top = messages.Hottest
	r, err := query.Hot(s, q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Subpaths {
		var text strings.Builder
		for _, sym := range r.Subpaths[i].Symbols {
			fmt.Fprintf(&text, "%s#%d ", s.RoutineOf(sym).Name, s.Symbols[sym].Path)
		}
		list = append(list, text.String())
	}
	return list
}

// TestWindowsBesideAnother: while a process is recorded in windows, another recording of it that
// finds its probes is refused, and disturbs nothing; afterwards it is not.
func TestWindowsBesideAnother(t *testing.T) {
	pid := startWork(t)
	w := startTracer(t, "-v", "-p", strconv.Itoa(pid), "-o", "x.wpp", "--overhead", "50",
		"--window", "5ms")
	w.expect("recording process")
	w.expect("a window has ended")
	another := func() (status int, errs string) {
		cmd := exec.Command("wpptrace", "-p", strconv.Itoa(pid), "--overhead", "0",
			"--max-slowdown", "0", "-d", "500ms", "-o", filepath.Join(t.TempDir(), "y.wpp"))
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// between windows it may come before the cold probes do
	if status, errs := another(); status != 0 && !strings.Contains(errs, fmt.Sprintf(
		"a breakpoint stands there already: detach the debugger or other tracer, which is "+
			"process %d", w.cmd.Process.Pid)) {
		t.Errorf("another: status %d, %s", status, errs)
	}
	for range 3 { // one may have ended before
		w.expect("a window has ended")
	}
	w.signal(os.Interrupt)
	w.wait(0)
	endedOn(t, w, "x.wpp", record.Interrupted)
	if status, errs := another(); status != 0 {
		t.Errorf("another afterwards: status %d, %s", status, errs)
	}
}

// chancy is a program that takes one of two ways, as often as it is told.
const chancy = `
#include <stdlib.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) static void often(int x)
{
	for (int i = 0; i < (x & 7); i++)
		sum += i;
}
__attribute__((noinline)) static void seldom(int x)
{
	for (int i = 0; i < (x & 3); i++)
		sum -= i;
}
int main(int argc, char **argv)
{
	srand(1);
	for (;;) {
		for (int i = 0; i < 1000; i++)
			if (rand() % 100 < atoi(argv[1]))
				seldom(rand());
			else
				often(rand());
		usleep(100);
	}
}`

// TestDiffOfWindows: of recordings in windows of a program that does the same, next to nothing is
// listed; of one that takes a way more often, that is.
func TestDiffOfWindows(t *testing.T) {
	program := testenv.CompileC(t, chancy, "-O1")
	record := func(percent string) string {
		cmd := exec.Command(program, percent)
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		s, w := recordWindows(t, cmd.Process.Pid, 12, "--overhead", "50", "--window", "2ms")
		if s.Figures.Windows < 10 {
			t.Errorf("%d windows", s.Figures.Windows)
		}
		return w.path("x.wpp")
	}
	before := record("10")
	diff := func(a, b string) (d report.DiffJSON) {
		t.Helper()
		out, errs, status := wpptrace("diff", "--json", "--top", "0", a, b)
		if status != 0 || strings.Contains(errs, "by chance") {
			t.Fatalf("status %d: %s", status, errs)
		}
		must(t, json.Unmarshal([]byte(out), &d))
		return d
	}
	// One pair of recordings in twenty may differ by chance, in many paths at once; two of three
	// do in one of a hundred and forty.
	const pairs, byChance = 3, 1
	differ := 0
	for range pairs {
		d := diff(record("10"), record("10"))
		if d.HiddenPaths < 5 || d.WindowsA < 10 {
			t.Errorf("of the same: %d paths are hidden, of %d windows", d.HiddenPaths, d.WindowsA)
		}
		if d.FoundPaths > 2 {
			t.Logf("of the same: %d paths are listed, %d not", d.FoundPaths, d.HiddenPaths)
			differ++
		}
	}
	if differ > byChance {
		t.Errorf("of %d pairs of the same, %d differ", pairs, differ)
	}
	d := diff(before, record("40"))
	found := false
	for _, p := range d.Paths {
		if p.Low != nil && *p.Low > 0 && p.Paths[0].Routine == "seldom" {
			found = true
		}
	}
	if !found {
		t.Errorf("a way that is taken more often is not listed: %+v", d)
	}
}

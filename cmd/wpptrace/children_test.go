package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// begetter starts a process, a thread, or nothing.
const begetter = `
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static char *volatile name;
__attribute__((noinline)) static char *get(void) { return name; }
static void *thread(void *arg) { return arg; }
int main(int c, char **v) {
	pthread_t t;
	for (int i = 0; i < 100; i++) get();
	switch (v[1][0]) {
	case 'p': if (!fork()) _exit(0); wait(0); break;
	case 't': pthread_create(&t, 0, thread, 0); pthread_join(t, 0); break;
	}
	return 0;
}`

// Processes that the target starts are not traced: the recording says so, once, and how many there
// were, with copies of the probes.
func TestChildren(t *testing.T) {
	program := testenv.CompileC(t, begetter, "-O1", "-pthread")
	for child, want := range map[string]bool{"process": true, "thread": false, "none": false} {
		_, errs, status := wpptrace("-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program, child)
		for _, text := range []string{
			" (prog) has started another, which is not recorded: --follow-fork records it, too\n",
			" (prog) has started 1 other, not recorded: 1 may have had copies of probes, which " +
				"slow down, for ",
		} {
			if got := strings.Count(errs, text); status != 0 || got > 1 || (got == 1) != want {
				t.Errorf("%s: status %d, %s", child, status, errs)
			}
		}
	}
}

// A selection whose hits are single-stepped is warned of.
func TestSelectionIsSlow(t *testing.T) {
	program := testenv.CompileC(t, begetter, "-O1", "-pthread")
	for selected, want := range map[string]bool{"^get$": true, "^main$": false} {
		_, errs, status := wpptrace("-F", selected, "-o", filepath.Join(t.TempDir(), "x.wpp"), "--",
			program, "none")
		const warning = "wpptrace: 100% of the expected hits are single-stepped, and slow, most " +
			"in get: -N leaves it out\n"
		if status != 0 || strings.Contains(errs, warning) != want {
			t.Errorf("-F %s: status %d, %s", selected, status, errs)
		}
	}
}

// TestChildrenFromBefore: --follow-fork of a process that had started others before. They were not
// followed, and nothing said so.
func TestChildrenFromBefore(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command("bash", "-c",
		`sleep 60 & sleep 60 & while read; do echo; done; kill $(jobs -p); exit 7`))
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--follow-fork", "-o", "x.wpp", "-d", "0.2")
	w.expect(" (bash) had started 2 others before (")
	w.wait(0)
	s.End()
}

// TestCommandIsKilled: a command that a signal ends says nothing itself, nor does a shell, for it
// is not its own. wpptrace said nothing, either.
func TestCommandIsKilled(t *testing.T) {
	for name, want := range map[string]string{
		"XFSZ": " (bash) was killed by SIGXFSZ: it wrote a larger file than ulimit -f allows\n",
		"SEGV": " (bash) was killed by SIGSEGV\n",
		"PIPE": "",
	} {
		signal := unix.SignalNum("SIG" + name)
		w := startTracer(t, "-o", "x.wpp", "--", "bash", "-c", "kill -"+name+" $$")
		w.wait(128 + int(signal))
		if errs := w.errs.String(); !strings.Contains(errs, want) ||
			want == "" && strings.Contains(errs, "killed by") {
			t.Errorf("%s: %s", name, errs)
		}
	}
}

// TestFileSizeLimit: the snapshot is larger than ulimit -f allows. That is an error that says so,
// and no death by SIGXFSZ.
func TestFileSizeLimit(t *testing.T) {
	const script = `ulimit -f 1; exec wpptrace -q -o x.wpp -- bash -c 'for ((i = 0; i < 30; i++)); do :; done'`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	w := runTracer(t, cmd)
	w.wait(1)
	const want = "wpptrace: write snapshot x.wpp: file too large: allow larger files with ulimit -f"
	if errs := w.errs.String(); !strings.Contains(errs, want) {
		t.Errorf("%s", errs)
	}
}

// forker works without a pause, and at SIGUSR1 starts another that does. That one prints whether a
// call takes it far longer than one took when no probe stood.
const forker = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
enum { CALLS = 20000, FAR = 20 };
static volatile int asked;
static void on(int signal) { asked = signal; }
__attribute__((noinline)) int work(int x)
{
	int s = 0;
	for (int i = 0; i < (x & 7); i++)
		s += x >> i & 1 ? i : x;
	return s;
}
static double calls(void)
{
	struct timespec a, b;
	volatile int sink;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (int i = 0; i < CALLS; i++)
		sink = work(i);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	return (b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec;
}
int main(void)
{
	int child = 0;
	signal(SIGUSR1, on);
	calls();
	double before = calls();
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (asked && !child) {
			if (fork())
				child = -1;
			else
				child = 1;
			alarm(100); /* should the test be killed */
		}
		double now = calls();
		if (child == 1) {
			puts(now > FAR * before ? "slow" : "fast");
			if (fflush(stdout))
				exit(0);
		}
		usleep(10000);
	}
}`

// TestForkedChildIsFast: a process that the target had forked ran at a 400th of its speed until the
// recording ended. Where probes stand all the time it still does, which a line says.
func TestForkedChildIsFast(t *testing.T) {
	program := testenv.CompileC(t, forker, "-O1")
	for _, c := range []struct {
		flags []string
		fast  bool
	}{
		{[]string{"--overhead", "0", "--max-slowdown", "0"}, false},
		{[]string{"--overhead", "90"}, true}, // the first window is long
		{[]string{"--overhead", "5"}, true},
	} {
		s := testenv.Start(t, exec.Command(program))
		s.Answer()
		w := startTracer(t, append([]string{"-p", strconv.Itoa(s.PID()), "-o", "x.wpp"},
			c.flags...)...)
		w.expect("recording process")
		if err := unix.Kill(s.PID(), unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		w.expect("has started another, which is not recorded: --follow-fork records it, too")
		if !c.fast {
			w.expect("what process " + strconv.Itoa(s.PID()) + " (prog) forks is slowed down, too, " +
				"until probes go out, for it has copies of them: probes that stand all the time " +
				"are put in once, and nothing is kept that could put in more: --overhead has them " +
				"taken out; --follow-fork records these, too")
		}
		answer := s.Answer()
		for range 1000 {
			if c.fast == (strings.TrimSpace(answer) == "fast") {
				break
			}
			answer = s.Answer()
		}
		if c.fast != (strings.TrimSpace(answer) == "fast") {
			t.Errorf("%q: the child is still %s", c.flags, answer)
		}
		w.signal(unix.SIGINT)
		w.wait(0)
		if !strings.Contains(w.errs.String(), "has started 1 other, not recorded: 1 may have had copies") {
			t.Errorf("%q: %s", c.flags, w.errs.String())
		}
		unix.Kill(s.PID(), unix.SIGKILL)
	}
}

// starter forks all the time and does hardly anything itself: each child works and prints how many
// us of CPU time that took.
const starter = `
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
volatile unsigned sum;
__attribute__((noinline)) static unsigned step(unsigned x)
{
	return x & 1 ? x * 3 + 1 : x / 2;
}
int main(void)
{
	alarm(100); /* should the test be killed */
	for (;;) {
		if (!fork()) {
			struct timespec t;
			for (unsigned i = 0; i < 100000; i++)
				sum += step(sum + i);
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
			printf("%ld\n", t.tv_sec * 1000000 + t.tv_nsec / 1000);
			fflush(stdout);
			_exit(0);
		}
		wait(0);
		usleep(20000);
	}
}`

// TestForksPayForMoments: children of a process that forks all the time, and that is hardly ever
// seen at work, paid for probes that stood in it all the time. What they use while they have copies
// is charged to the budget, which takes the probes out.
func TestForksPayForMoments(t *testing.T) {
	s := testenv.Start(t, exec.Command(testenv.CompileC(t, starter, "-O1")))
	took := func() time.Duration {
		us, err := strconv.Atoi(strings.TrimSpace(s.Answer()))
		must(t, err)
		return time.Duration(us) * time.Microsecond
	}
	usual := took()
	for range 9 {
		usual = max(usual, took())
	}
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "-d", "3s")
	w.expect("recording process")
	const far, most = 10, 0.3
	slow, all := 0, 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); all++ {
		if took() > far*usual {
			slow++
		}
	}
	w.wait(0)
	if float64(slow) > most*float64(all) {
		t.Errorf("%d of %d children were slowed down more than %d times: %s", slow, all, far,
			w.errs.String())
	}
	unix.Kill(s.PID(), unix.SIGKILL)
}

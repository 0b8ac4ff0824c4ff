package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/query"
)

// kin has relatives in each way that there is, and says what it sees of them.
const kin = `
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *truth[] = {"true", 0};
static volatile int sink;

__attribute__((noinline)) static int work(int n)
{
	int r = 1;
	for (int i = 0; i < n; i++)
		r = r % 3 ? r * 2 + i : r / 3 + n;
	return r & 63;
}
static void child(void) { _exit(work(50)); }
static void see(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status)) {
		printf("stopped by %d\n", WSTOPSIG(status));
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
	printf("status %x\n", status);
}
static void one(void)
{
	pid_t pid = fork();
	if (!pid)
		child();
	see(pid);
}
static void *in_thread(void *what)
{
	((void (*)(void))what)();
	return 0;
}
static void become(void) { execv("/bin/true", truth); }
static void thread(void (*what)(void))
{
	pthread_t others[3], t;
	for (int i = 0; i < 3; i++)
		pthread_create(&others[i], 0, in_thread, sleep);
	pthread_create(&t, 0, in_thread, what);
	pthread_join(t, 0);
}
static void killed(void)
{
	pid_t pid = fork();
	if (!pid)
		for (;;)
			sink = work(3);
	kill(pid, SIGKILL);
	see(pid);
}
static void poked(void)
{
	pid_t pid = fork();
	int status;
	if (!pid) {
		sink = work(1000);
		become();
	}
	while (!waitpid(pid, &status, WNOHANG))
		kill(pid, SIGCONT);
	printf("status %x\n", status);
}
static void daemons(void)
{
	int fds[2];
	char c;
	if (pipe(fds))
		_exit(9);
	pid_t pid = fork();
	if (!pid) {
		setsid();
		if (!fork()) {
			sink = work(99);
			if (write(fds[1], "x", 1) != 1)
				_exit(9);
		}
		_exit(0);
	}
	see(pid);
	close(fds[1]);
	while (read(fds[0], &c, 1) == 1)
		puts("the daemon has worked");
}
static void debugged(void)
{
	pid_t pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		become();
	}
	see(pid);
}
static void spawned(void)
{
	pid_t pid;
	posix_spawn(&pid, "/bin/true", 0, 0, truth, environ);
	see(pid);
}
static void sharing(void)
{
	static char stack[65536];
	pid_t pid = clone((int (*)(void *))in_thread, stack + sizeof stack, CLONE_VM | SIGCHLD, child);
	see(pid);
}
static void crowd(void)
{
	pid_t pids[40];
	for (int i = 0; i < 40; i++)
		if (!(pids[i] = fork()))
			child();
	for (int i = 0; i < 40; i++)
		see(pids[i]);
}
static void jobs(void)
{
	int status;
	signal(SIGTTOU, SIG_IGN);
	pid_t pid = fork();
	if (!pid)
		become();
	while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status))
		puts("a job has stopped");
	printf("status %x\n", status);
}
int main(int c, char **v)
{
	static const struct { const char *name; void (*what)(void); } ways[] = {
		{"fork", one}, {"killed", killed}, {"poked", poked}, {"daemons", daemons}, {"debugged",
			debugged}, {"spawned", spawned},
		{"sharing", sharing}, {"crowd", crowd}, {"jobs", jobs}, {"become", become},
	};
	setvbuf(stdout, 0, _IONBF, 0);
	for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++)
		if (!strcmp(ways[i].name, v[1])) {
			if (c > 2)
				thread(ways[i].what);
			else
				ways[i].what();
		}
	if (!strcmp(v[1], "system"))
		printf("status %x\n", system("true; exit 3"));
	return work(20) & 7;
}`

// A followed is what was said, and recorded, of a family.
type followed struct {
	recorded []string // names of programs, sorted
	errs     string
	stats    []query.Stat
}

var (
	recordingLine = regexp.MustCompile(` recording process (\d+) \((.*)\) to (.*)\n`)
	refusalLine   = regexp.MustCompile(` process \d+ (\(.*\) is not recorded: .*)\n`)
)

// readFollowed reads what a tracer has left, whose snapshots must be good ones.
func readFollowed(t *testing.T, dir, errs string) followed {
	t.Helper()
	f := followed{errs: errs}
	for _, m := range recordingLine.FindAllStringSubmatch(errs, -1) {
		f.recorded = append(f.recorded, m[2])
		s, err := store.ReadFile(filepath.Join(dir, m[3]))
		if err != nil {
			t.Error(err)
			continue
		}
		stat, err := query.NewStat(s, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		if strconv.Itoa(stat.PID) != m[1] || stat.Lost != 0 || stat.Anomalies != 0 {
			t.Errorf("%s is of process %d, with %d events lost and %d anomalies", m[3], stat.PID,
				stat.Lost, stat.Anomalies)
		}
		f.stats = append(f.stats, stat)
	}
	slices.Sort(f.recorded)
	return f
}

// Whatever relatives a process has, they are recorded, and it sees of them what it sees untraced.
func TestFollow(t *testing.T) {
	program := testenv.CompileC(t, kin, "-O1", "-pthread")
	for _, c := range []struct {
		args   string
		want   string // recorded, a regular expression
		refuse string // why others are not, a regular expression of what is said of them
	}{
		{"fork thread", "prog prog", ""},
		{"spawned", "prog true", ""},
		{"sharing", "prog", ""},
		{"system", "prog sh, file dash", ""},
		{"become thread", "prog true", ""},
		{"killed", "prog( prog)?", `(\(prog\) is not recorded: .*: it has exited)?`},
		{"poked", "prog( prog)?( true)?", ".*"},
		{"daemons", "prog prog prog", ""},
		{"debugged", "prog prog", `\(true\) is not recorded: a debugger has it`},
		{"crowd", "prog( prog)+", ".*4 are recorded at the same time, as many as --memory 256M " +
			"is for"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			args := append([]string{program}, strings.Fields(c.args)...)
			alone := exec.Command(args[0], args[1:]...)
			want, _ := alone.Output()
			w := startTracer(t,
				append([]string{"--follow-fork", "--memory", "256M", "-o", "x.wpp", "--"},
					args...)...)
			w.wait(alone.ProcessState.ExitCode())
			if got := w.stdout.String(); got != string(want) {
				t.Errorf("it said %q, untraced %q", got, want)
			}
			f := readFollowed(t, w.dir, w.errs.String())
			if names := strings.Join(f.recorded,
				" "); !regexp.MustCompile("^(" + c.want + ")$").MatchString(names) {
				t.Errorf("recorded: %q, want %q\n%s", names, c.want, f.errs)
			}
			var refused []string
			for _, m := range refusalLine.FindAllStringSubmatch(f.errs, -1) {
				refused = append(refused, m[1])
			}
			if !regexp.MustCompile("^("+c.refuse+")$").MatchString(strings.Join(refused, "; ")) ||
				!strings.HasSuffix(f.errs, "\nlost: 0 events\n") {
				t.Errorf("it printed: %s", f.errs)
			}
			if n := len(w.files()); n != len(f.recorded) {
				t.Errorf("%d files for %d recordings: %q", n, len(f.recorded), w.files())
			}
		})
	}
}

// A shell that runs jobs on a terminal does not see one stop: they are not followed, which is
// printed.
func TestFollowJobs(t *testing.T) {
	program := testenv.CompileC(t, kin, "-O1", "-pthread")
	terminal, name := openTerminal(t)
	side, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	defer side.Close()
	cmd := exec.Command("wpptrace", "--follow-fork", "-o", "x.wpp", "--", program, "jobs")
	cmd.Dir = t.TempDir()
	cmd.Stdin, cmd.SysProcAttr = side, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	w := runTracer(t, cmd)
	w.wait(1)
	terminal.Close()
	if got := w.stdout.String(); got != "status 0\n" {
		t.Errorf("it saw %q", got)
	}
	if errs := w.errs.String(); !strings.Contains(errs, "is not recorded: it is the job of a "+
		"shell on a terminal") || !strings.Contains(errs, "nor are 1 more: ") || strings.Count(errs,
		"recording") != 1 {
		t.Errorf("it printed: %s", errs)
	}
}

// openTerminal makes a terminal, and returns the name of its other side.
func openTerminal(t *testing.T) (terminal *os.File, name string) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	must(t, err)
	return terminal, fmt.Sprintf("/dev/pts/%d", n)
}

// Each program of a pipeline has a snapshot; one that cannot be recorded is reported, and runs;
// figures come one object a line.
func TestFollowPipeline(t *testing.T) {
	const bare = `void _start(void) { __asm__("mov $60, %eax; xor %edi, %edi; syscall"); }`
	program := testenv.CompileC(t, bare, "-nostdlib", "-static", "-fno-asynchronous-unwind-tables")
	w := startTracer(t, "--follow-fork", "--json", "-o", "x.wpp", "--", "dash", "-c",
		`echo one | cat; "$0"; exec cat /dev/null`, program)
	w.wait(0)
	errs := w.errs.String()
	f := readFollowed(t, w.dir, errs)
	if got := strings.Join(f.recorded, " "); got != "cat cat dash dash dash" {
		t.Errorf("recorded: %s\n%s", got, errs)
	}
	if out := w.stdout.String(); out != "one\n" {
		t.Errorf("it said %q", out)
	}
	if n := strings.Count(errs, `{"schema_version":`); n != len(f.recorded) {
		t.Errorf("figures of %d of %d:\n%s", n, len(f.recorded), errs)
	}
	if strings.Count(errs, " (prog) is not recorded: ") != 1 ||
		strings.Contains(errs, "started others") {
		t.Errorf("it printed: %s", errs)
	}
}

// forking is a shell that forks all the time, and says so.
const forking = `while read -r n; do i=0; while [ $i -lt $n ]; do (s=$i; exit $((s % 3))); t=$((t + $?)); i=$((i + 1)); done; echo $t; done; exit 7`

// A time that is over and a signal end the recording of all; the processes go on.
func TestFollowEnds(t *testing.T) {
	for _, c := range []struct {
		limit string
		end   func(w *tracer)
		want  string
		on    record.Reason
	}{
		{"0",
			func(w *tracer) {
				w.expect("recording process")
				w.signal(unix.SIGUSR2)
				w.signal(os.Interrupt)
			}, "interrupted: tracing ended", record.Interrupted},
		{"500ms", func(*tracer) {}, "500ms are over: tracing ended", record.DurationOver},
	} {
		s := testenv.StartSubject(t, exec.Command("dash", "-c", forking))
		w := startTracer(t, "--follow-fork", "--max-slowdown", "0", "-o", "x.wpp", "-d", c.limit,
			"-p", strconv.Itoa(s.PID()))
		w.expect("recording process")
		s.Put(5)
		c.end(w)
		w.expect(c.want)
		if got := s.Answer(); got != "4\n" {
			t.Errorf("it answered %q", got)
		}
		w.wait(0)
		readFollowed(t, w.dir, w.errs.String())
		endedOn(t, w, "x.wpp", c.on)
		s.IsClean()
		s.End()
	}
}

// Killed at any moment, wpptrace leaves nobody stopped of those that it follows, and no breakpoint.
func TestFollowKilled(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command("dash", "-c", forking))
	sum := 0
	for i := range amount(2, 50) {
		cmd := exec.Command("wpptrace", "--follow-fork", "--max-slowdown", "0", "-o", "x.wpp", "-p",
			strconv.Itoa(s.PID()))
		cmd.Dir = t.TempDir()
		w := runTracer(t, cmd)
		w.expect("recording process")
		s.Put(3)
		w.expect("recording process")
		time.Sleep(time.Duration(i*7%50) * time.Millisecond)
		w.signal(unix.SIGKILL)
		w.cmd.Wait()
		sum += 3
		if got := s.Answer(); got != fmt.Sprintln(sum) {
			t.Errorf("it answered %q, not %d", got, sum)
		}
		s.BecomesClean()
	}
	s.End()
}

// Nor does one that is killed with its guard leave anybody stopped.
func TestFollowKilledWithItsGuard(t *testing.T) {
	mayLetGo(t)
	s := testenv.StartSubject(t, exec.Command("dash", "-c", forking))
	sum := 0
	for i := range amount(3, 50) {
		w := startTracer(t, "--follow-fork", "--max-slowdown", "0", "-o", "x.wpp", "-p",
			strconv.Itoa(s.PID()))
		w.expect("recording process")
		s.Put(3)
		w.expect("recording process")
		time.Sleep(time.Duration(i*7%50) * time.Millisecond)
		w.killBoth(i%2 == 0)
		sum += 3
		if got := s.Answer(); got != fmt.Sprintln(sum) {
			t.Errorf("it answered %q, not %d", got, sum)
		}
	}
	s.End()
}

// A guard that is killed leaves nobody stopped either.
func TestFollowGuardKilled(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command("dash", "-c", forking))
	w := startTracer(t, "--follow-fork", "--max-slowdown", "0", "-o", "x.wpp", "-p",
		strconv.Itoa(s.PID()))
	w.expect("recording process")
	s.Put(3)
	w.expect("recording process")
	must(t, unix.Kill(guardOf(t, w.cmd.Process.Pid), unix.SIGKILL))
	if got := s.Answer(); got != "3\n" {
		t.Errorf("it answered %q", got)
	}
	w.expect("killed")
	w.wait(1)
	s.BecomesClean()
	s.End()
}

// Processes are followed with no more privileges than it takes, and not with fewer: they could be
// stopped, but not let go on.
func TestFollowFewCapabilities(t *testing.T) {
	const nobody = 65534
	program, work := copyProgram(t, "wpptrace"), anybodysDir(t)
	with := func(caps ...uintptr) *exec.Cmd {
		cmd := exec.Command(program, "--follow-fork", "-o", "x.wpp", "--", "dash", "-c",
			"(:); exec true")
		cmd.Dir = work
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody,
			Gid: nobody}, AmbientCaps: caps}
		return cmd
	}
	fails(t, with(unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE),
		"follow processes: no CAP_KILL: run wpptrace as root")
	w := runTracer(t, with(unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE, unix.CAP_KILL))
	w.wait(0)
	if got := strings.Join(readFollowed(t, w.dir, w.errs.String()).recorded,
		" "); got != "dash dash true" {
		t.Errorf("recorded: %s\n%s", got, w.errs.String())
	}
}

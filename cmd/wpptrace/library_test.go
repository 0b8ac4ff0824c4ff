package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/loader/attach"
)

// plugin is a library that counts what it does by calls of leaf.
const plugin = `
__attribute__((noinline)) static unsigned leaf(unsigned x) { return x * 5 + 1; }
unsigned run(unsigned n)
{
	volatile unsigned sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum = leaf(sum);
	return sum;
}`

// opener reads how, and how often, and answers when it is done: 0 opens a plugin, has it run 7
// times and closes it, 1 does so in a thread, 2 in two threads with two plugins at once; 3 opens
// one for good and has it run.
const opener = `
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static int times;
static void run(void *library) { ((unsigned (*)(unsigned))dlsym(library, "run"))(7); }
static void *work(void *path)
{
	for (int i = 0; i < times; i++) {
		void *library = dlopen(path, RTLD_NOW);
		if (!library)
			return path;
		run(library);
		dlclose(library);
	}
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t t[2];
	void *kept = 0;
	for (int how; puts("ready"), fflush(stdout), scanf("%d %d", &how, &times) == 2;) {
		void *failed[2] = {0, 0};
		if (how == 0)
			failed[0] = work(argv[1]);
		if (how == 3 && !kept)
			kept = dlopen(argv[1], RTLD_NOW);
		for (int i = 0; how == 3 && i < times; i++)
			run(kept);
		for (int i = 0; how < 3 && i < how; i++)
			pthread_create(&t[i], 0, work, argv[1 + i]);
		for (int i = 0; how < 3 && i < how; i++)
			pthread_join(t[i], &failed[i]);
		if (failed[0] || failed[1])
			return 1;
	}
	return 7;
}`

// Ways of an opener, and how often a plugin runs each time.
const (
	inMain = iota
	inThread
	inTwoThreads
	forGood
	runs = 7
)

// An opened is an opener at work, and the plugins that it opens.
type opened struct {
	*testenv.Subject
	t       *testing.T
	plugins [2]string
}

func startOpener(t *testing.T) *opened {
	t.Helper()
	o := &opened{t: t}
	for i := range o.plugins {
		o.plugins[i] = filepath.Join(filepath.Dir(testenv.CompileC(t, plugin, "-O1", "-shared",
			"-fPIC")),
			"plugin.so")
		if err := os.Rename(filepath.Join(filepath.Dir(o.plugins[i]), "prog"),
			o.plugins[i]); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(testenv.CompileC(t, opener, "-O1", "-pthread"), o.plugins[0], o.plugins[1])
	o.Subject = testenv.Start(t, cmd)
	o.Answer()
	return o
}

func (o *opened) begin(how, times int) {
	o.t.Helper()
	if _, err := fmt.Fprintln(o.In, how, times); err != nil {
		o.t.Fatal(err)
	}
}

func (o *opened) open(how, times int) {
	o.t.Helper()
	o.begin(how, times)
	o.Answer()
}

// record has plugins traced that are open, or will be.
func (o *opened) record(flags ...string) *tracer {
	o.t.Helper()
	return o.recordBy(exec.Command("wpptrace"), flags...)
}

// recordBy is record by a command that is wpptrace.
func (o *opened) recordBy(cmd *exec.Cmd, flags ...string) *tracer {
	o.t.Helper()
	cmd.Args = append(append(cmd.Args, "-v", "-p", strconv.Itoa(o.PID()), "-o", "x.wpp",
		"--max-slowdown", "0", "--lib", "plugin*.so"), flags...)
	cmd.Dir = anybodysDir(o.t)
	w := runTracer(o.t, cmd)
	w.expect("recording process")
	return w
}

// finish ends the recording and the opener, and returns how often leaf was called.
func (o *opened) finish(w *tracer) (calls uint64, s *wpp.Snapshot) {
	o.t.Helper()
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(o.t, w, "x.wpp", 1)
	s, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, thread := range s.Threads {
		calls += leaves(s, thread.Grammar)
	}
	for _, text := range []string{"not traced", "tracing ended: "} {
		if strings.Contains(w.errs.String(), text) {
			o.t.Errorf("wpptrace says %q:\n%s", text, w.errs.String())
		}
	}
	o.IsClean()
	o.End()
	return calls, s
}

// finishWith is finish, of a recording of so many calls.
func (o *opened) finishWith(w *tracer, want int) {
	o.t.Helper()
	if calls, _ := o.finish(w); calls != uint64(want) {
		o.t.Errorf("leaf was called %d times, not %d:\n%s", calls, want, w.errs.String())
	}
}

// Libraries that come and go, in one thread or in two at once, are recorded whole, each time.
func TestLibrariesComeAndGo(t *testing.T) {
	for _, c := range []struct {
		name         string
		how, threads int
		flags        []string
	}{
		{"in one thread", inThread, 1, nil},
		{"in two threads", inTwoThreads, 2, nil},
		{"stopped on overflow", inTwoThreads, 2,
			[]string{"--on-overflow", "stop", "--ring-size", "4K"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const times = 50
			o := startOpener(t)
			w := o.record(c.flags...)
			o.open(c.how, times)
			o.open(c.how, times)
			o.finishWith(w, 2*c.threads*times*runs)
		})
	}
}

// A recording that has begun opens and probes libraries with the capabilities that it has kept.
func TestLibrariesWithFewCapabilities(t *testing.T) {
	const nobody = 65534
	for _, flags := range [][]string{nil, {"--on-overflow", "stop"}} {
		cmd := exec.Command(copyProgram(t, "wpptrace"))
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
			AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_PTRACE,
				unix.CAP_KILL, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_DAC_READ_SEARCH},
		}
		o := startOpener(t)
		w := o.recordBy(cmd, flags...)
		o.open(inThread, 5)
		o.finishWith(w, 5*runs)
	}
}

// With a budget, libraries come and go while probes stand and while they do not: windows open and
// close in all images.
func TestWindowsOfLibraries(t *testing.T) {
	o := startOpener(t)
	w := o.record("--overhead", "5", "--window", "2ms")
	const times, windows = 1000, 3
	seen := make(chan bool)
	go func() {
		defer close(seen)
		for n := 0; n < windows && w.lines.Scan(); {
			if strings.Contains(w.lines.Text(), "a window has ended") {
				n++
			}
			fmt.Fprintln(&w.errs, w.lines.Text())
		}
	}()
	rounds := uint64(0)
	for began, over := time.Now(), false; !over; rounds++ { // the budget is made of what it does
		o.open(inTwoThreads, times)
		select {
		case <-seen:
			over = true
		default:
			if time.Since(began) > testenv.Patience {
				t.Fatal("no windows")
			}
		}
	}
	if calls, s := o.finish(w); calls == 0 || calls > 2*rounds*times*runs ||
		s.Figures.Windows < windows {
		t.Errorf("leaf was called %d times, in %d windows", calls, s.Figures.Windows)
	}
	if strings.Contains(w.errs.String(), "SIGCONT") {
		t.Errorf("wpptrace takes its own SIGCONT for somebody else's:\n%s", w.errs.String())
	}
}

// Of one thread, what it runs of libraries is recorded, and nothing of the others.
func TestLibraryInOneThread(t *testing.T) {
	o := startOpener(t)
	w := o.record("--tid", strconv.Itoa(o.PID()))
	o.open(inMain, 5)
	o.open(inTwoThreads, 10)
	o.finishWith(w, 5*runs)
}

// A library whose file has been removed is traced by way of the process, and what is in its place
// by now is another.
func TestReplacedLibraries(t *testing.T) {
	o := startOpener(t)
	o.open(forGood, 1)
	if err := os.Remove(o.plugins[0]); err != nil {
		t.Fatal(err)
	}
	w := o.record()
	o.open(forGood, 3)
	if err := os.Rename(o.plugins[1], o.plugins[0]); err != nil {
		t.Fatal(err)
	}
	o.open(inThread, 5)
	o.open(forGood, 2)
	o.finishWith(w, (3+5+2)*runs)
}

// More libraries than can be traced are external code, and the recording goes on.
func TestTooManyLibraries(t *testing.T) {
	dir := t.TempDir()
	library, err := os.ReadFile(testenv.CompileC(t, plugin, "-O1", "-shared", "-fPIC"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range attach.MaxLibraries + 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("plugin%d.so", i)), library,
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := testenv.CompileC(t, `
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < `+strconv.Itoa(attach.MaxLibraries+2)+`; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/plugin%d.so", argv[1], i);
		((unsigned (*)(unsigned))dlsym(dlopen(path, RTLD_NOW), "run"))(7);
	}
	return 0;
}`)
	w := startTracer(t, "-o", "x.wpp", "--lib", "plugin*", "--", program, dir)
	w.wait(0)
	checkRecording(t, w, "x.wpp", uint64(attach.MaxLibraries*runs))
	if n := strings.Count(w.errs.String(), "is not traced: it is one too many: 32 libraries can "+
		"be traced"); n != 2 {
		t.Errorf("%d libraries are reported as one too many, not 2:\n%s", n, w.errs.String())
	}
}

// A process that somebody stops and lets go on, again and again, while it opens libraries, comes to
// its end. All is recorded, or the output says that it is not.
func TestLibrariesAndSomebodyElsesStops(t *testing.T) {
	const times, stops = 50, 40
	o := startOpener(t)
	w := o.record()
	o.begin(inThread, times)
	for range stops {
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
			if err := unix.Kill(o.PID(), sig); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Millisecond) // at any moment of a library's arrival
		}
	}
	o.Answer()
	calls, _ := o.finish(w)
	early := strings.Contains(w.errs.String(), "by a SIGCONT too early")
	if calls > times*runs || calls < times*runs && !early {
		t.Errorf("leaf was called %d times, not %d:\n%s", calls, times*runs, w.errs.String())
	}
}

// That --lib names nothing that is loaded is printed before the recording, and at its end, for it
// may be loaded yet.
func TestLibraryNotLoaded(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--lib", "nosuch", "--lib",
		"libc.so*", "--max-slowdown", "0", "-d", "0.2")
	w.expect(fmt.Sprintf(`--lib "nosuch" names no library that process %d has loaded so far`,
		s.PID()))
	w.expect("recording process")
	w.expect("are over")
	w.expect(`--lib "nosuch" has named no library`)
	w.wait(0)
	if printed := w.errs.String(); strings.Contains(printed, `"libc.so*"`) {
		t.Errorf("what names a library is said not to:\n%s", printed)
	}
	s.End()
}

// TestLibraryNotNeeded: a --lib that names no library that a command's program is linked with. It
// was printed when the command had ended.
func TestLibraryNotNeeded(t *testing.T) {
	w := startTracer(t, "-o", "x.wpp", "--lib", "nosuch", "--lib", "libc.so*", "--", "bash", "-c",
		":")
	w.expect(`--lib "nosuch" names no library that bash is linked with`)
	w.expect("recording process")
	w.wait(0)
	if strings.Contains(w.errs.String(), `"libc.so*"`) {
		t.Errorf("of what names a library too:\n%s", w.errs.String())
	}
}

// That --lib names nothing that is loaded is printed by plan, too.
func TestPlanLibraryNotLoaded(t *testing.T) {
	s := testenv.StartServer(t)
	out, errs, status := wpptrace("plan", "--lib", "nosuch", "-p", strconv.Itoa(s.PID()))
	if status != 0 || !strings.Contains(errs, `--lib "nosuch" names no library that process`) ||
		!strings.Contains(out, "libc.so.6\n") {
		t.Errorf("plan: status %d\n%s%s", status, out, errs)
	}
	s.End()
}

// A library is named by its soname too, which is that of a symbolic link, as a rule: so the program
// that is linked with it needs it, and so we print it. Its file has another name.
func TestLibraryByItsSoname(t *testing.T) {
	dir := anybodysDir(t)
	library := filepath.Join(dir, "libcounted.so.1.2")
	must(t, os.Rename(testenv.CompileC(t, plugin, "-O1", "-shared", "-fPIC",
		"-Wl,-soname,libcounted.so.1"),
		library))
	must(t, os.Symlink(library, filepath.Join(dir, "libcounted.so.1")))
	program := testenv.CompileC(t, `
#include <stdio.h>
unsigned run(unsigned);
int main(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
	return run(7) == 0;
}`, "-O1", "-Wl,--no-as-needed", library, "-Wl,-rpath,"+dir)
	for _, glob := range []string{"libcounted.so.1", "libcounted.so.1.2", library,
		"libcounted.so.?"} {
		cmd := exec.Command(program)
		in, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		pid := strconv.Itoa(cmd.Process.Pid)
		text, errs, status := wpptrace("plan", "--lib", glob, "-p", pid)
		if _, list, _ := strings.Cut(text, "libraries "); status != 0 ||
			strings.Contains(errs, "names no library") || strings.Contains(list, "libcounted") {
			t.Errorf("plan --lib %s: status %d\n%s%s", glob, status, text, errs)
		}
		w := startTracer(t, "-p", pid, "-o", "x.wpp", "--max-slowdown", "0", "--lib", glob)
		w.expect("recording process")
		must(t, in.Close())
		w.wait(0)
		must(t, cmd.Wait())
		checkRecording(t, w, "x.wpp", runs)
		if strings.Contains(w.errs.String(), "no library") {
			t.Errorf("--lib %s -p: %s", glob, w.errs.String())
		}
	}
	w := startTracer(t, "-o", "x.wpp", "--lib", "libcounted.so.1", "--", program)
	w.wait(0)
	checkRecording(t, w, "x.wpp", runs)
}

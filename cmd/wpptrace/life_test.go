package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// answering does as the server does, in a way that its defines say.
const answering = `
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned traps;
static void trapped(int signal) { traps++; }

/* confine has the kernel kill us for any system call but those that answering takes. */
static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(99);
}

__attribute__((noinline)) static unsigned work(unsigned s, unsigned i)
{
#ifdef TRAPS
	if (s % 5 == 0)
		__asm__ volatile("int3");
#endif
	return s % 7 ? s * 31 + i : s / 3 + 1;
}

static volatile int answers;

static void *answer(void *unused)
{
	char line[32];
	unsigned s = 1;
	size_t have = 0;
	while (read(0, line + have, 1) == 1) {
		if (line[have] != '\n') {
			have += have < sizeof(line) - 1;
			continue;
		}
		line[have] = 0;
		have = 0;
		for (int i = 0, n = atoi(line); i < n; i++)
			s = work(s, i);
		int length = snprintf(line, sizeof(line), "%u %u\n", s, traps);
		if (write(1, line, length) != length)
			_exit(1);
		answers++;
	}
	_exit(7);
}

int main(void)
{
	signal(SIGTRAP, trapped);
#ifdef CONFINED
	confine();
#endif
#ifdef HEADLESS
	pthread_t thread;
	if (pthread_create(&thread, 0, answer, 0))
		return 1;
	while (answers < HEADLESS)
		usleep(20000); // it hardly works: its probes stand from the first on
	pthread_exit(0);
#endif
	answer(0);
}`

// A circumstance is what befalls a process that is traced.
type circumstance struct {
	name           string
	flags          []string                           // of the compiler
	before, during func(*testing.T, *testenv.Subject) // the recording; nil: nothing
	after          func(*testing.T, *testenv.Subject) // it has ended, and the process goes on
}

// Whatever befalls a process, it is recorded, answers as when nobody traces it, and is left as it
// was.
func TestCircumstances(t *testing.T) {
	deleteFile := func(t *testing.T, s *testenv.Subject) { must(t, os.Remove(s.Cmd.Path)) }
	replaceFile := func(t *testing.T, s *testenv.Subject) {
		other := testenv.CompileC(t, "int main(void) { return 0; }")
		must(t, os.Rename(other, s.Cmd.Path))
	}
	stop := func(t *testing.T, s *testenv.Subject) {
		must(t, s.Cmd.Process.Signal(unix.SIGSTOP))
		testenv.Eventually(t, func() bool { return !isRunning(t, s) }, "it is stopped")
	}
	goOn := func(t *testing.T, s *testenv.Subject) {
		if isRunning(t, s) {
			t.Error("a stop that somebody else made was undone")
		}
		must(t, s.Cmd.Process.Signal(unix.SIGCONT))
	}
	for _, c := range []circumstance{
		{name: "nothing"},
		{name: "its file is deleted", before: deleteFile},
		{name: "its file is deleted meanwhile", during: deleteFile},
		{name: "its file is replaced", before: replaceFile},
		{name: "its file is replaced meanwhile", during: replaceFile},
		{name: "it is stopped", before: stop, during: goOn},
		{name: "it is stopped meanwhile", during: stop, after: goOn},
		{name: "it is stopped all the time", before: stop, after: goOn},
		{name: "seccomp confines it", flags: []string{"-DCONFINED"}},
		{name: "it runs into breakpoints of its own", flags: []string{"-DTRAPS"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t) })
	}
}

func (c *circumstance) check(t *testing.T) {
	program := testenv.CompileC(t, answering, append(c.flags, "-O1")...)
	questions := []int{1000, 500, 2000}
	untraced := testenv.StartSubject(t, exec.Command(program))
	var want, got []string
	for _, n := range questions {
		want = append(want, untraced.Ask(n))
	}
	untraced.End()

	s := testenv.StartSubject(t, exec.Command(program))
	befall := func(what func(*testing.T, *testenv.Subject)) {
		if what != nil {
			what(t, s)
		}
		if isRunning(t, s) {
			got = append(got, s.Ask(questions[len(got)]))
		}
	}
	befall(c.before)
	asked := len(got)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
	w.expect("recording process " + strconv.Itoa(s.PID()) + " (prog) to")
	befall(c.during)
	least := uint64(1000 * (len(got) - asked) / 2)
	w.signal(os.Interrupt)
	w.wait(0)
	s.IsClean()
	befall(c.after)
	for len(got) < len(questions) {
		befall(nil)
	}
	s.End()
	if !slices.Equal(got, want) {
		t.Errorf("it answered %q, untraced %q", got, want)
	}
	checkRecording(t, w, "x.wpp", least)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isRunning(t *testing.T, s *testenv.Subject) bool { return stateOf(t, s.PID()) != 'T' }

// A process goes on when its first thread ends, and so does its recording. The kernel puts no more
// probes in then.
func TestFirstThreadEnds(t *testing.T) {
	at := func(answers int) string {
		return testenv.CompileC(t, answering, "-O1", "-pthread",
			fmt.Sprintf("-DHEADLESS=%d", answers))
	}
	const refusal = "its first thread has ended, others go on"
	t.Run("a command", func(t *testing.T) {
		snapshot := filepath.Join(t.TempDir(), "x.wpp")
		s := testenv.StartSubject(t, exec.Command("wpptrace", "-q", "-o", snapshot, "--", at(0)))
		s.Ask(1000)
		s.End()
		checkRecording(t, &tracer{t: t, dir: filepath.Dir(snapshot)}, "x.wpp", 1000)
	})
	t.Run("before", func(t *testing.T) {
		s := testenv.StartSubject(t, exec.Command(at(0)))
		testenv.Eventually(t, func() bool { return stateOf(t, s.PID()) == 'Z' },
			"its first thread has ended")
		w := startTracer(t, "-p", strconv.Itoa(s.PID()))
		w.wait(1)
		if errs := w.errs.String(); !strings.Contains(errs, refusal) {
			t.Errorf("printed %s", errs)
		}
		s.End()
	})
	for _, flags := range [][]string{{"--max-slowdown", "0"}, {"--overhead", "20"}} {
		t.Run(flags[0], func(t *testing.T) {
			least := uint64(1000) // paths
			s := testenv.StartSubject(t, exec.Command(at(2)))
			w := startTracer(t,
				append([]string{"-p", strconv.Itoa(s.PID()), "-o", "x.wpp"}, flags...)...)
			w.expect("recording process")
			s.Ask(1000)
			testenv.Eventually(t, func() bool { return stateOf(t, s.PID()) == 'Z' },
				"its first thread has ended")
			if windows := flags[0] == "--overhead"; windows {
				least = 100
				s.Put(math.MaxInt32) // it is at work when the next one opens
				w.expect(refusal)
			} else {
				s.Ask(500)
				w.signal(os.Interrupt)
			}
			w.wait(0)
			if n := probesOf(t, s.PID()); n != 0 {
				t.Errorf("%d probes stand", n)
			}
			checkRecording(t, w, "x.wpp", least)
		})
	}
}

// A debugger that has a process, or takes it while it is recorded, and goes through it instruction
// by instruction, is in nobody's way.
func TestDebugger(t *testing.T) {
	program := testenv.CompileC(t, answering, "-O1")
	untraced := testenv.StartSubject(t, exec.Command(program))
	want := []string{untraced.Ask(1000), untraced.Ask(500)}
	untraced.End()
	for _, first := range []bool{true, false} {
		s := testenv.StartSubject(t, exec.Command(program))
		debug := func() *debugger { return attachDebugger(t, s.PID()) }
		var d *debugger
		if first {
			d = debug()
		}
		w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
		w.expect("recording process")
		if !first {
			d = debug()
		}
		// what waits for a question cannot be stepped
		d.stepFrom(300, func() { fmt.Fprintln(s.In, 1000) })
		answer, err := s.Out.ReadString('\n')
		must(t, err)
		got := []string{answer, s.Ask(500)}
		w.signal(os.Interrupt)
		w.wait(0)
		s.IsClean()
		d.detach()
		s.End()
		if !slices.Equal(got, want) {
			t.Errorf("the debugger first: %v: it answered %q, untraced %q", first, got, want)
		}
		checkRecording(t, w, "x.wpp", 200)
	}
}

// A debugger has a process, which runs. What it does it does on one thread.
type debugger struct {
	t    *testing.T
	pid  int
	work chan func() error
	done chan error
}

func attachDebugger(t *testing.T, pid int) *debugger {
	d := &debugger{t, pid, make(chan func() error), make(chan error)}
	go func() {
		runtime.LockOSThread() // and the thread ends with it
		for f := range d.work {
			d.done <- f()
		}
	}()
	t.Cleanup(func() { close(d.work) })
	d.do(func() error { return unix.PtraceSeize(pid) })
	return d
}

func (d *debugger) do(f func() error) {
	d.t.Helper()
	d.work <- f
	must(d.t, <-d.done)
}

// stepFrom stops the process, and has it go so many instructions from what begin begins, and then
// run.
func (d *debugger) stepFrom(n int, begin func()) {
	d.t.Helper()
	d.do(func() error {
		if err := d.stop(); err != nil {
			return err
		}
		begin()
		for range n {
			if err := unix.PtraceSingleStep(d.pid); err != nil {
				return err
			}
			if err := d.wait(); err != nil {
				return err
			}
		}
		return unix.PtraceCont(d.pid, 0)
	})
}

func (d *debugger) detach() {
	d.t.Helper()
	d.do(func() error { return errors.Join(d.stop(), unix.PtraceDetach(d.pid)) })
}

func (d *debugger) stop() error {
	if err := unix.PtraceInterrupt(d.pid); err != nil {
		return err
	}
	return d.wait()
}

func (d *debugger) wait() error {
	var status unix.WaitStatus
	_, err := unix.Wait4(d.pid, &status, unix.WALL, nil)
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it has not stopped: %x", status)
	}
	return err
}

// A process number that is used again is not the process that had it: nothing is looked at, and
// nothing put in.
func TestNumberUsedAgain(t *testing.T) {
	first := exec.Command("sleep", "1000")
	must(t, first.Start())
	pid := first.Process.Pid
	p, err := target.Open(pid)
	must(t, err)
	defer p.Close()
	must(t, first.Process.Kill())
	first.Wait()
	second := startAs(t, pid)
	if err := p.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) || p.Alive() {
		t.Errorf("it is taken for the process that had its number: %v", err)
	}
	o := record.Options{Process: p, Output: t.TempDir() + "/x.wpp"}
	_, err = record.Run(t.Context(), o,
		func(e record.Event) { t.Errorf("its program is looked at: %+v", e) })
	if err == nil || !strings.HasSuffix(err.Error(), "(sleep): it has exited") {
		t.Errorf("it is recorded: %v", err)
	}
	second.IsClean()
	second.Ask(10)
	second.End()
}

// startAs starts the server as a process of that number.
func startAs(t *testing.T, pid int) *testenv.Subject {
	t.Helper()
	for began := time.Now(); time.Since(began) < testenv.Patience; {
		must(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0))
		cmd := exec.Command("bash", "-c", testenv.Server)
		s := testenv.StartSubject(t, cmd)
		if s.PID() == pid {
			return s
		}
		s.End() // somebody else was quicker
	}
	t.Fatalf("process number %d does not come up", pid)
	return nil
}

// TestExecThatFails: a thread whose exec fails when the others are gone already, and it has the
// first one's number, ends with what it has done.
func TestExecThatFails(t *testing.T) {
	program := testenv.CompileC(t, `
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) static unsigned leaf(unsigned x) { return x * 5 + 1; }
static void *work(void *file)
{
	volatile unsigned sum = 0;
	for (int i = 0; i < 7; i++)
		sum = leaf(sum);
	execl(file, file, (char *)0);
	return file;
}
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, 0, work, argv[1]);
	pthread_join(t, 0);
	return 0;
}`, "-O1", "-pthread")
	file := filepath.Join(t.TempDir(), "misplaced")
	header := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64),
		byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	// cannot be mapped
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 1,
		Vaddr: 0x400000, Filesz: 64, Memsz: 64}
	var image bytes.Buffer
	if err := errors.Join(binary.Write(&image, binary.LittleEndian, header),
		binary.Write(&image, binary.LittleEndian, segment)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, image.Bytes(), 0o700); err != nil {
		t.Fatal(err)
	}
	w := startTracer(t, "-q", "-o", "x.wpp", "--", program, file)
	w.wait(128 + int(unix.SIGSEGV))
	s, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	checkRecording(t, w, "x.wpp", 1)
	var n uint64
	for _, thread := range s.Threads {
		n += leaves(s, thread.Grammar)
	}
	if n != 7 {
		t.Errorf("leaf was called %d times, not 7", n)
	}
}

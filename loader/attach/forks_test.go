package attach

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// families starts others, each in its own way, and does the same work as they.
const families = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) int work(int x)
{
	int s = 0;
	for (int i = 0; i < (x & 7); i++)
		s += x >> i & 1 ? i : x;
	return s;
}

static void work_on(void)
{
	alarm(100); /* should the test be killed */
	for (volatile int sink, i = 0;; i++) {
		sink = work(i);
		if (!(i & 4095))
			usleep(1000);
	}
}

static void *in_thread(void *unused)
{
	work_on();
	return unused;
}

int main(void)
{
	pthread_t thread;
	pid_t child;

	puts("1");
	fflush(stdout);
	switch (getchar()) {
	case 'f':
		if (!(child = fork()))
			work_on();
		printf("%d\n", child);
		fflush(stdout);
		break;
	case 'v': /* it may write, for that is a system call */
		if (!(child = vfork())) {
			dprintf(1, "%d\n", getpid());
			work_on();
		}
		break;
	case 't':
		if (!(child = fork()))
			work_on();
		pthread_create(&thread, 0, in_thread, 0);
		printf("%d\n", child);
		fflush(stdout);
		getchar();
		pthread_exit(0);
	}
	work_on();
}`

// family is such a program with probes, and one that it has started.
func family(t *testing.T, how, flags string) (s *Session, first, other *target.Process,
	subject *testenv.Subject) {
	t.Helper()
	path := testenv.CompileC(t, families, strings.Fields(flags)...)
	subject = testenv.Start(t, exec.Command(path))
	subject.Answer()
	p, err := target.Open(subject.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	exe, err := p.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	of := planOf(t, path)
	if s, err = Load(p, of.image, of.plan, Options{Ring: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := errors.Join(s.Attach(exe), s.Enable(false)); err != nil {
		t.Fatal(err)
	}
	if _, err := subject.In.Write([]byte(how)); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(subject.Answer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Kill(pid, unix.SIGKILL) })
	if other, err = target.Open(pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return s, p, other, subject
}

// haveProbes fails unless a process has so many breakpoints of a session.
func haveProbes(t *testing.T, s *Session, p *target.Process, want int) {
	t.Helper()
	if n, err := s.images.executable().left(p); err != nil || n != want {
		t.Errorf("%d probes in process %d, want %d: %v", n, p.PID, want, err)
	}
}

// clearAll takes the copies of all probes out, some at a time.
func clearAll(t *testing.T, s *Session) {
	t.Helper()
	const most = 5
	all := 0
	for n := most; n == most; all += n {
		var err error
		if n, err = s.Forks().ClearCopies(all, most); err != nil {
			t.Fatal(err)
		}
	}
	if want := len(s.images.plan.Sites); all != want {
		t.Errorf("copies of %d probes are out, want %d", all, want)
	}
}

// TestClearCopies: a forked process ran at a 400th of its speed until the recording ended, for it
// had copies of the probes. What shares the memory of the process keeps them.
func TestClearCopies(t *testing.T) {
	const nops = "-O1 -no-pie -fno-pie -fcf-protection=none -pg -mfentry -mnop-mcount"
	for _, c := range []struct {
		how, flags string
		want       ForkCount
	}{
		{"f", "-O1", ForkCount{1, 1}},
		{"f", nops, ForkCount{1, 1}}, // a probe on such a nop becomes a call, which is copied, too
		{"v", "-O1", ForkCount{1, 0}},
	} {
		s, first, other, _ := family(t, c.how, c.flags)
		all := len(s.images.plan.Sites)
		if got := s.Forks().Count(); got != c.want {
			t.Errorf("%q: forks %+v, want %+v", c.how, got, c.want)
		}
		if c.flags != nops {
			haveProbes(t, s, other, all)
		}
		clearAll(t, s)
		left := 0
		if c.want.Copies == 0 {
			left = all
		}
		if c.flags != nops {
			haveProbes(t, s, first, all)
			haveProbes(t, s, other, left)
		} else if err := checkText(other, s.images.executable().image); err != nil {
			t.Errorf("%q: %v", c.how, err)
		}
		for _, p := range []*target.Process{first, other} {
			if c.how == "v" && p == first { // which waits
				continue
			}
			before, _ := p.Times()
			testenv.Eventually(t, func() bool {
				now, err := p.Times()
				return err == nil && now.Sub(before).CPU > 0
			}, "process %d goes on", p.PID)
		}
		if err := s.Detach(); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*target.Process{first, other} {
			if err := checkText(p, s.images.executable().image); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestClearCopiesWithoutFirstThread: the kernel knows a process by the memory of its first thread,
// and would take the probes out of all others, the process itself too.
func TestClearCopiesWithoutFirstThread(t *testing.T) {
	s, first, other, subject := family(t, "t", "-O1 -pthread")
	if err := exec.Command("true").Run(); err != nil { // a process ends
		t.Fatal(err)
	}
	all := len(s.images.plan.Sites)
	clearAll(t, s)
	haveProbes(t, s, first, all)
	haveProbes(t, s, other, 0)
	if err := s.objects.Clearing.Set(uint32(1)); err != nil { // as if that went on
		t.Fatal(err)
	}
	subject.Put(1)
	testenv.Eventually(t, s.Forks().headless, "the first thread has ended")
	var enabled uint32
	if err := s.objects.Enabled.Get(&enabled); err != nil || enabled != 0 {
		t.Errorf("it still reports: %v", err)
	}
	if _, err := s.Forks().ClearCopies(0, all); !errors.Is(err, ErrCopiesStay) {
		t.Errorf("without the first thread: %v", err)
	}
	threads, err := first.Threads()
	if err != nil {
		t.Fatal(err)
	}
	// which has the memory still
	haveProbes(t, s, &target.Process{PID: threads[len(threads)-1]}, all)
}

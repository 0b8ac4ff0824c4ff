package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// A ring buffer of a page and a command that fills it again and again: nothing is lost, and its
// output and status are its own.
func TestNothingIsLostOfCommands(t *testing.T) {
	const script = `for ((i = 0; i < 30; i++)); do s=$(((s * 31 + i) % 1000003)); done; echo $s; exit 3`
	w := startTracer(t, "-q", "-o", "x.wpp", "--ring-size", "4K", "--on-overflow", "stop", "--",
		"bash", "-c", script)
	w.wait(3)
	if got := w.stdout.String(); got != "366027\n" {
		t.Errorf("output %q", got)
	}
	checkRecording(t, w, "x.wpp", 10000)
}

// Threads that run on while the one that has had the signal to stop waits for a processor get it as
// well: the page has no room for their events.
func TestNothingIsLostOfThreads(t *testing.T) {
	path := testenv.CompileC(t, `
		#include <pthread.h>
		static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
		static volatile unsigned sum;
		__attribute__((noinline)) static unsigned chain(unsigned long n) {
			unsigned length = 0;
			for (; n != 1; n = n & 1 ? 3 * n + 1 : n / 2)
				length++;
			return length;
		}
		__attribute__((noinline)) static void add(unsigned n) {
			pthread_mutex_lock(&lock);
			sum += n;
			pthread_mutex_unlock(&lock);
		}
		static void *work(void *first) {
			for (int i = 1; i <= 1000; i++)
				add(chain(i + (long)first));
			return first;
		}
		int main(void) {
			pthread_t threads[3];
			for (long i = 0; i < 3; i++)
				pthread_create(&threads[i], 0, work, (void *)(i * 1000));
			for (int i = 0; i < 3; i++)
				pthread_join(threads[i], 0);
		}`, "-O1", "-pthread")
	keepBusy(t)
	w := startTracer(t, "-q", "-o", "x.wpp", "--ring-size", "4K", "--on-overflow", "stop", "--",
		path)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 50000)
}

// keepBusy has other processes contend for the processors until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		other := exec.Command("sh", "-c", "while :; do :; done")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	}
}

// shortThreads is a server that has threads make events each, by CALLS calls, as often as it is
// asked: THREADS at a time. With -DWAIT they wait then. Ten calls are less than a batch.
const shortThreads = `
	#include <pthread.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>
	#ifndef CALLS
	#define CALLS 10
	#define THREADS 64
	#endif
	static pthread_barrier_t begun;
	__attribute__((noinline)) static long next(long x) { return x & 1 ? 3 * x + 1 : x / 2; }
	static void *work(void *x) {
		for (int i = 0; i < CALLS; i++)
			x = (void *)next((long)x);
		pthread_barrier_wait(&begun);
	#ifdef WAIT
		pause();
	#endif
		return x;
	}
	static void serve(int rounds) {
		pthread_t threads[THREADS];
		for (; rounds; rounds--) {
			for (long i = 0; i < THREADS; i++)
				pthread_create(&threads[i], 0, work, (void *)(i + 1000));
			pthread_barrier_wait(&begun);
	#ifndef WAIT
			for (int i = 0; i < THREADS; i++)
				pthread_join(threads[i], 0);
	#endif
		}
		puts("served");
		fflush(stdout);
	}
	int main(void) {
		char line[16];
		pthread_barrier_init(&begun, 0, THREADS + 1);
		while (fgets(line, sizeof(line), stdin))
			serve(atoi(line));
		_exit(7);
	}`

// TestNothingIsLostOfShortThreads: what a thread has left at its end nobody can stop it for.
func TestNothingIsLostOfShortThreads(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, shortThreads, "-O1", "-pthread")))
	keepBusy(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--ring-size", "4K", "--on-overflow", "stop")
	w.expect("recording process")
	s.Ask(40)
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 40*64*10)
	s.End()
}

// TestNothingIsLostOfThousandsOfThreads: many threads had a batch full, one after the other, before
// the first of them had stopped. Not every time.
func TestNothingIsLostOfThousandsOfThreads(t *testing.T) {
	threads := amount(300, 2000)
	s := testenv.StartSubject(t,
		exec.Command(testenv.CompileC(t, shortThreads, "-O1", "-pthread", "-DWAIT",
			"-DCALLS=30", fmt.Sprintf("-DTHREADS=%d", threads))))
	keepBusy(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--ring-size", "4K", "--on-overflow", "stop")
	w.expect("recording process")
	s.Ask(1)
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", uint64(threads)*30)
	s.End()
}

// TestNoMoreThreadsThanCanBeKept: who begins threads is stopped, though none of them has a batch
// full.
func TestNoMoreThreadsThanCanBeKept(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, shortThreads, "-O1", "-pthread")))
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--ring-size", "4K", "--on-overflow", "stop")
	w.expect("recording process")
	w.signal(unix.SIGSTOP)
	w.waitState(w.cmd.Process.Pid, 'T')
	s.Put(3)
	w.waitState(s.PID(), 'T')
	w.signal(unix.SIGCONT)
	s.Answer()
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 3*64*10)
	s.End()
}

// TestNothingIsLostOfThreadsThatAreDrained: what threads have left when the recording ends is more
// than the page has room for.
func TestNothingIsLostOfThreadsThatAreDrained(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, shortThreads, "-O1", "-pthread",
		"-DWAIT")))
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--ring-size", "4K", "--on-overflow", "gap")
	w.expect("recording process")
	s.Ask(1)
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 64*10)
	s.End()
}

// holdServer has a tracer stop the server because it does not read: it is stopped itself.
func holdServer(t *testing.T) (*testenv.Subject, *tracer, <-chan string) {
	t.Helper()
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--on-overflow", "stop", "--ring-size", "4K")
	w.expect("recording process")
	w.signal(unix.SIGSTOP)
	w.waitState(w.cmd.Process.Pid, 'T')
	answer := make(chan string, 1)
	go func() {
		fmt.Fprintln(s.In, 50)
		line, _ := s.Out.ReadString('\n')
		answer <- line
	}()
	w.waitState(s.PID(), 'T')
	return s, w, answer
}

// waitState waits until a process is in a state, as /proc/PID/stat has it.
func (w *tracer) waitState(pid int, want byte) {
	w.t.Helper()
	testenv.Eventually(w.t, func() bool { return stateOf(w.t, pid) == want },
		"process %d is in state %c", pid, want)
}

func stateOf(t *testing.T, pid int) byte {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return stat[bytes.LastIndexByte(stat, ')')+2]
}

// A process that wpptrace has stopped goes on when wpptrace is killed.
func TestKilledWhileItHolds(t *testing.T) {
	want := answers(t, 50)
	s, w, answer := holdServer(t)
	w.signal(unix.SIGKILL)
	w.cmd.Wait()
	if got := <-answer; got != want[0] {
		t.Errorf("the server answered %q, untraced %q", got, want[0])
	}
	s.BecomesClean()
	s.End()
}

// mayLetGo skips a test of what kernels do for those that wpptrace has stopped when nobody else is
// left.
func mayLetGo(t *testing.T) {
	if version, err := features.LinuxVersionCode(); err == nil && version < 6<<16|16<<8 {
		t.Skip("Linux 6.16 and later let them go on")
	}
}

// killBoth kills wpptrace and its guard.
func (w *tracer) killBoth(guardFirst bool) {
	w.t.Helper()
	both := []int{w.cmd.Process.Pid, guardOf(w.t, w.cmd.Process.Pid)}
	if guardFirst {
		slices.Reverse(both)
	}
	for _, pid := range both {
		must(w.t, unix.Kill(pid, unix.SIGKILL))
	}
	w.cmd.Wait()
}

// So does one whose guard is killed with it, as all of a control group is: the kernel lets it go
// on.
func TestKilledWithItsGuard(t *testing.T) {
	mayLetGo(t)
	want := answers(t, 50)
	for i := range amount(4, 100) {
		s, w, answer := holdServer(t)
		w.killBoth(i%2 == 0)
		select {
		case got := <-answer:
			if got != want[0] {
				t.Errorf("the server answered %q, untraced %q", got, want[0])
			}
		case <-time.After(testenv.Patience):
			t.Fatalf("the server, in state %c, does not answer", stateOf(t, s.PID()))
		}
		s.End()
	}
}

// So does one whose first thread has ended.
func TestFirstThreadEndedKilledWithItsGuard(t *testing.T) {
	mayLetGo(t)
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, answering, "-O1", "-pthread",
		"-DHEADLESS=2")))
	p, err := target.Open(s.PID())
	must(t, err)
	defer p.Close()
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--on-overflow", "stop", "--ring-size", "4K")
	w.expect("recording process")
	s.Ask(1)
	w.waitState(s.PID(), 'Z')
	w.signal(unix.SIGSTOP)
	w.waitState(w.cmd.Process.Pid, 'T')
	s.Put(10_000)
	testenv.Eventually(t, p.Stopped, "it is stopped")
	w.killBoth(false)
	s.Answer()
	s.End()
}

// A process that somebody else stops while wpptrace has stopped it stays so until they let it go
// on, and nothing is lost.
func TestStoppedBySomebodyElse(t *testing.T) {
	want := answers(t, 50)
	s, w, answer := holdServer(t)
	other := func(sig unix.Signal) {
		if err := unix.Kill(s.PID(), sig); err != nil {
			t.Fatal(err)
		}
	}
	other(unix.SIGSTOP)
	w.signal(unix.SIGCONT)
	const while = 300 * time.Millisecond
	for began := time.Now(); time.Since(began) < while; time.Sleep(time.Millisecond) {
		if state := stateOf(t, s.PID()); state != 'T' {
			t.Fatalf("the server is in state %c", state)
		}
	}
	other(unix.SIGCONT)
	if got := <-answer; got != want[0] {
		t.Errorf("the server answered %q, untraced %q", got, want[0])
	}
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 10000)
	s.IsClean()
	s.End()
}

// A process that somebody else lets go on too early is stopped again, and nothing is lost.
func TestContinuedBySomebodyElse(t *testing.T) {
	s, w, answer := holdServer(t)
	for range 3 {
		if err := unix.Kill(s.PID(), unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		w.waitState(s.PID(), 'T')
	}
	w.signal(unix.SIGCONT)
	<-answer
	w.signal(os.Interrupt)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 10000)
	s.End()
}

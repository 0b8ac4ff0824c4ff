package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// sameOperations fails the test unless the raw trace of a recording makes the same operations as
// its snapshot.
func sameOperations(t *testing.T, w *tracer, snapshot, trace string) {
	t.Helper()
	again := w.path("again.wpp")
	if _, errs, status := wpptrace("compress", w.path(trace), "-o", again); status != 0 {
		t.Fatalf("compress: status %d: %s", status, errs)
	}
	want, _, _ := wpptrace("dump", "--as", "ops", w.path(snapshot))
	got, errs, status := wpptrace("dump", "--as", "ops", again)
	if status != 0 || got != want {
		t.Errorf("status %d: %s%d bytes of operations, want %d", status, errs, len(got), len(want))
	}
}

// A process that is met in mid-run, with activations of which nothing is known.
func TestRawTraceOfProcess(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--raw", "x.raw",
		"--max-slowdown", "0")
	w.expect("recording process")
	s.Ask(20)
	w.signal(os.Interrupt)
	w.wait(0)
	s.End()
	checkRecording(t, w, "x.wpp", 1000)
	sameOperations(t, w, "x.wpp", "x.raw")
}

// Threads, some of them with the numbers of others that have ended, signals and longjmp.
func TestRawTraceOfThreads(t *testing.T) {
	program := testenv.CompileC(t, `
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
static _Thread_local jmp_buf back;
static volatile int sum;
__attribute__((noinline)) static void fall(int n) { if (n == 0) longjmp(back, 1); fall(n - 1);
	sum++; }
__attribute__((noinline)) static void handle(int s) { for (int i = 0; i < 3; i++) sum += s; }
static void *work(void *arg) {
	for (int i = 0; i < 50; i++) {
		if (setjmp(back) == 0) fall(i % 7);
		if (i % 10 == 3) raise(SIGUSR1);
	}
	return arg;
}
int main(void) {
	signal(SIGUSR1, handle);
	for (int i = 0; i < 20; i++) {
		pthread_t a, b;
		pthread_create(&a, 0, work, 0);
		pthread_create(&b, 0, work, 0);
		pthread_join(a, 0);
		pthread_join(b, 0);
	}
	return 0;
}`, "-O1", "-pthread")
	w := startTracer(t, "-o", "x.wpp", "--raw", "x.raw", "--", program)
	w.wait(0)
	s, err := store.ReadFile(w.path("x.wpp"))
	if err != nil || len(s.Threads) != 41 {
		t.Fatalf("%v: %d threads", err, len(s.Threads))
	}
	sameOperations(t, w, "x.wpp", "x.raw")
}

// What is lost is in the raw trace as well.
func TestRawTraceOfLosses(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--raw", "x.raw",
		"--max-slowdown", "0", "--ring-size", "4K")
	w.expect("recording process")
	s.Ask(100)
	w.signal(os.Interrupt)
	w.wait(0)
	s.End()
	sameOperations(t, w, "x.wpp", "x.raw")
	recorded, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := store.ReadFile(w.path("again.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	if f := &compressed.Figures; f.Gaps == 0 || f.Lost != recorded.Figures.Lost ||
		f.Gaps != recorded.Figures.Gaps {
		t.Errorf("%d lost in %d places, recorded %d in %d", f.Lost, f.Gaps, recorded.Figures.Lost,
			recorded.Figures.Gaps)
	}
}

// Bytes are kept off a terminal.
func TestSymbolsOnTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var errs strings.Builder
	status := run([]string{"dump", "--as", "symbols", "x.wpp"}, terminal, &errs)
	const want = "wpptrace: --as symbols is binary, and not written to a terminal: use > FILE, " +
		"or a pipe; see wpptrace dump --help\n"
	if status != exitUsage || errs.String() != want {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

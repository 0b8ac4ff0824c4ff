package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/loader/target"
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
	s := startServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.pid()), "-o", "x.wpp", "--raw", "x.raw", "--max-slowdown", "0")
	w.expect("recording process")
	s.ask(20)
	w.signal(os.Interrupt)
	w.wait(0)
	s.end()
	checkRecording(t, w, "x.wpp", 1000)
	sameOperations(t, w, "x.wpp", "x.raw")
}

// Threads, some of them with the numbers of others that have ended, signals and longjmp.
func TestRawTraceOfThreads(t *testing.T) {
	program := compileC(t, `
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
static _Thread_local jmp_buf back;
static volatile int sum;
__attribute__((noinline)) static void fall(int n) { if (n == 0) longjmp(back, 1); fall(n - 1); sum++; }
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
	s := startServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.pid()), "-o", "x.wpp", "--raw", "x.raw", "--max-slowdown", "0", "--ring-size", "4K")
	w.expect("recording process")
	s.ask(100)
	w.signal(os.Interrupt)
	w.wait(0)
	s.end()
	sameOperations(t, w, "x.wpp", "x.raw")
	recorded, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := store.ReadFile(w.path("again.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	if f := &compressed.Figures; f.Gaps == 0 || f.Lost != recorded.Figures.Lost || f.Gaps != recorded.Figures.Gaps {
		t.Errorf("%d lost in %d places, recorded %d in %d", f.Lost, f.Gaps, recorded.Figures.Lost, recorded.Figures.Gaps)
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
	const want = "wpptrace: --as symbols is binary, and not written to a terminal: use > FILE, or a pipe; see wpptrace dump --help\n"
	if status != exitUsage || errs.String() != want {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// A raw trace goes to a file of its own, to one that it replaces, or to a pipe, also by way of a
// link; never through a link to a file.
func TestRawTraceFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(precious, link); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, c := range []struct {
		path string
		err  error
	}{
		{filepath.Join(dir, "new"), nil},
		{filepath.Join(dir, "new"), nil},
		{fmt.Sprintf("/proc/self/fd/%d", w.Fd()), nil},
		{link, errLinked},
		{filepath.Join(dir, "no", "such"), unix.ENOENT},
	} {
		trace, err := openRawTrace(c.path)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.path, err, c.err)
		}
		if err == nil {
			must(t, trace.place())
			must(t, trace.abandon())
		}
	}
	if left, err := os.ReadFile(precious); string(left) != "old" {
		t.Errorf("what a link leads to is now %q, %v", left, err)
	}
}

// A raw trace that replaces a file is nobody else's to read, and is not written to what is another
// name of that file.
func TestRawTraceReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	precious, path := filepath.Join(dir, "precious"), filepath.Join(dir, "x.raw")
	must(t, os.WriteFile(precious, []byte("old"), 0o666))
	must(t, os.Chown(precious, 65534, 65534))
	must(t, os.Link(precious, path))
	trace, err := openRawTrace(path)
	must(t, err)
	must(t, trace.place())
	must(t, trace.abandon())
	info, err := os.Stat(path)
	must(t, err)
	if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o600 || int(stat.Uid) != os.Geteuid() {
		t.Errorf("mode %v, user %d", info.Mode(), stat.Uid)
	}
	for _, name := range []string{precious, store.Old(path)} {
		if left, err := os.ReadFile(name); string(left) != "old" {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
}

// TestRawTraceOfNothing: two recordings that were interrupted before they began left empty files in
// the place of a trace, and of the one before.
func TestRawTraceOfNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.raw")
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	trace, err := openRawTrace(path)
	must(t, err)
	r := offline(t)
	r.raw, r.used = trace, func() (target.Times, error) { return target.Times{}, target.ErrGone }
	if err := r.begin(true); err == nil {
		t.Error("a recording begins of a process that is gone")
	}
	must(t, trace.abandon())
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		if left, err := os.ReadFile(name); string(left) != content {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
	if left, err := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

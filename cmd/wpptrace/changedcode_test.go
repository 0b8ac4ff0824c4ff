package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// changesItself answers each number n by what steady, moved and patched make of those below n. By
// its argument it moves the page of moved to memory of its own first, makes that page writable,
// unmaps the page of unused, puts a breakpoint there, or puts a jump to another routine in the
// place of patched's entry.
const changesItself = `#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ROUTINE __attribute__((noipa))
#define PAGE __attribute__((noipa, aligned(4096)))
ROUTINE int steady(int x) { return x % 3 ? x * 2 : x - 1; }
PAGE int moved(int x) { return x % 5 ? x * 3 : x - 2; }
PAGE int patched(int x) { return x % 7 ? x * 5 : x - 3; }
PAGE int unused(int x) { return x % 9 ? x * 7 : x - 4; }
PAGE int replacement(int x) { return x % 2 ? x : 1; }

static void move(void)
{
	char *page = (char *)((uintptr_t)moved & -4096), *m = mmap(0, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(m, page, 4096);
	mprotect(m, 4096, PROT_READ | PROT_EXEC);
	mremap(m, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page);
}

static void patch(void)
{
	char *at = (char *)patched;
	int32_t distance = (char *)replacement - (at + 5);
	mprotect(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	at[0] = 0xe9;
	memcpy(at + 1, &distance, 4);
	mprotect(at, 4096, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv)
{
	int n, s = 0;
	if (argc > 1 && strstr(argv[1], "move"))
		move();
	if (argc > 1 && strstr(argv[1], "patch"))
		patch();
	if (argc > 1 && strstr(argv[1], "writable"))
		mprotect((void *)moved, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	if (argc > 1 && strstr(argv[1], "unmap"))
		munmap((void *)unused, 4096);
	if (argc > 1 && strstr(argv[1], "trap")) {
		mprotect((void *)unused, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
		*(char *)unused = 0xcc;
		mprotect((void *)unused, 4096, PROT_READ | PROT_EXEC);
	}
	while (scanf("%d", &n) == 1) {
		for (int i = 0; i < n; i++)
			s += steady(i) + moved(i) + patched(i);
		printf("%d\n", s);
		fflush(stdout);
	}
	return 7;
}
`

// checkNamed fails the test unless check, plan and the recording name a cause; of a program of
// which the rest is safe, they leave the routine out that is concerned, and record the rest.
func checkNamed(t *testing.T, s *testenv.Subject, cause string, leftOut ...string) {
	t.Helper()
	pid := fmt.Sprint(s.PID())
	state := "ok"
	if len(leftOut) == 0 {
		state = "missing"
	}
	out, errs, _ := wpptrace("check", "-p", pid)
	code := ""
	for line := range strings.Lines(out) {
		if strings.Contains(line, " code ") {
			code = line
		}
	}
	if !strings.HasPrefix(code, state+" ") || !strings.Contains(code, cause) {
		t.Errorf("check says %q%s, want %s, and %q", code, errs, state, cause)
	}
	if out, errs, _ = wpptrace("plan", "-p", pid); !strings.Contains(out, cause) {
		t.Errorf("plan does not say %q, but:\n%s%s", cause, out, errs)
	}
	if len(leftOut) == 0 {
		w := startTracer(t, "-p", pid)
		w.wait(exitError)
		if !strings.Contains(w.errs.String(), cause) || strings.Contains(w.errs.String(),
			"does not stand") {
			t.Errorf("the recording says %s, want %q before it attaches", w.errs.String(), cause)
		}
		s.IsClean()
		s.Ask(10)
		return
	}
	w := startTracer(t, "--overhead", "0", "-F", "^(steady|moved|patched|unused)$", "-o", "x.wpp",
		"-p", pid)
	w.expect("recording process")
	const asked = 100
	s.Ask(asked)
	w.signal(os.Interrupt)
	w.wait(0)
	if !strings.Contains(w.errs.String(), cause) {
		t.Errorf("the recording says %s, want %q", w.errs.String(), cause)
	}
	counts := callsIn(t, w.path("x.wpp"))
	for _, name := range []string{"steady", "moved", "patched"} {
		want := asked
		if slices.Contains(leftOut, name) {
			want = 0
		}
		if counts[name] != want {
			t.Errorf("%s ran %d times, want %d", name, counts[name], want)
		}
	}
	s.Ask(10)
	s.End()
}

// callsIn counts the whole paths of each routine in a snapshot.
func callsIn(t *testing.T, snapshot string) map[string]int {
	t.Helper()
	s, err := store.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, thread := range s.Threads {
		for sym := range thread.Grammar.Expand(0) {
			if r := s.RoutineOf(sym); r != nil {
				counts[r.Name]++
			}
		}
	}
	return counts
}

// A routine whose code the process has moved to memory that is no file's, as programs do that put
// their code on huge pages, is left out with this cause. It was said that its text was changed.
func TestCodeMovedByMremap(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, changesItself, "-O1"), "move"))
	checkNamed(t, s, "its code was moved to memory that is not its file's", "moved")
}

// A routine that the process has patched is left out with this cause, and so is all that was
// patched and moved.
func TestCodeThatIsPatched(t *testing.T) {
	program := testenv.CompileC(t, changesItself, "-O1")
	const cause = "its code is not the file's: code that is changed at run time cannot be traced"
	checkNamed(t, testenv.StartSubject(t, exec.Command(program, "patch")), cause, "patched")
	checkNamed(t, testenv.StartSubject(t, exec.Command(program, "patch and move")), "its code ",
		"patched",
		"moved")
}

// The same is so for a library that is traced: its routines that were moved or patched are left
// out.
func TestLibraryCodeThatIsPatched(t *testing.T) {
	library := testenv.CompileC(t, changesItself, "-O1", "-shared", "-fPIC", "-Dmain=run")
	dir := filepath.Dir(library)
	if err := os.Rename(library, filepath.Join(dir, "libchanges.so")); err != nil {
		t.Fatal(err)
	}
	const user = "int run(int, char **); int main(int argc, char **argv) { return run(argc, " +
		"argv); }"
	program := testenv.CompileC(t, user, "-O1", "-L"+dir, "-Wl,-rpath,"+dir, "-Wl,--no-as-needed",
		"-lchanges")
	s := testenv.StartSubject(t, exec.Command(program, "patch and move"))
	w := startTracer(t, "--overhead", "0", "--lib", "libchanges*", "-o", "x.wpp", "-p",
		fmt.Sprint(s.PID()))
	w.expect("recording process")
	const asked = 100
	s.Ask(asked)
	w.signal(os.Interrupt)
	w.wait(0)
	if errs := w.errs.String(); !strings.Contains(errs, "2 routines left out: its code ") {
		t.Errorf("the recording says %s", errs)
	}
	counts := callsIn(t, w.path("x.wpp"))
	if counts["steady"] != asked || counts["moved"] != 0 || counts["patched"] != 0 {
		t.Errorf("steady, moved and patched ran %d, %d and %d times", counts["steady"],
			counts["moved"], counts["patched"])
	}
	s.Ask(10)
	s.End()
}

// A program whose code is in a writable segment is refused with this cause and the remedy. It was
// said that its text was changed.
func TestCodeInAWritableSegment(t *testing.T) {
	const program = `
static long sys(long n, long a, long b, long c)
{
	long r;
	asm volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}
__attribute__((noipa)) int steady(int x) { return x % 3 ? x * 2 : x - 1; }
void _start(void)
{
	char line[100];
	while (sys(0, 0, (long)line, sizeof line) > 0) {
		line[0] = '0' + (steady(line[0]) & 7);
		line[1] = '\n';
		sys(1, 1, (long)line, 2);
	}
	sys(60, 7, 0, 0);
	__builtin_unreachable();
}
`
	s := testenv.StartSubject(t,
		exec.Command(testenv.CompileC(t, program, "-O1", "-static", "-nostdlib",
			"-mno-sse", "-Wl,-N")))
	checkNamed(t, s, "its code is in writable memory, where the kernel puts no probes: link it "+
		"without -N (--omagic)")
}

// A routine whose page the process has made writable as it ran is left out with the cause, and with
// the remedy for this way too: it was said only to link without -N.
func TestCodeMadeWritableAtRunTime(t *testing.T) {
	s := testenv.StartSubject(t,
		exec.Command(testenv.CompileC(t, changesItself, "-O1"), "writable"))
	checkNamed(t, s, "or have the program take write access away (mprotect)", "moved")
}

// A routine that the process has unmapped is left out as one that is not there. It was said that it
// was moved.
func TestCodeThatIsUnmapped(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, changesItself, "-O1"), "unmap"))
	checkNamed(t, s, "its code is not in memory any more: the process has unmapped it (munmap)",
		"unused")
}

// A program whose file overlayfs has copied to its upper layer since it was started is refused with
// this cause and the remedy: by all names it is the same file, and the kernel takes it for another.
func TestFileCopiedUpByOverlay(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tmpfs := filepath.Join(dir, "upper")
	if err := unix.Mount("tmpfs", tmpfs, "tmpfs", 0, ""); err != nil {
		testenv.Missing(t, err)
	}
	t.Cleanup(func() { unix.Unmount(tmpfs, unix.MNT_DETACH) })
	if err := errors.Join(os.Mkdir(tmpfs+"/up", 0o755),
		os.Mkdir(tmpfs+"/work", 0o755)); err != nil {
		t.Fatal(err)
	}
	program := testenv.CompileC(t, changesItself, "-O1")
	if err := os.Rename(program, filepath.Join(dir, "lower", "prog")); err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/up,workdir=%s/work", dir, tmpfs, tmpfs)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		testenv.Missing(t, err)
	}
	t.Cleanup(func() { unix.Unmount(merged, unix.MNT_DETACH) })
	prog := filepath.Join(merged, "prog")
	before := testenv.StartSubject(t, exec.Command(prog))
	if out, errs, _ := wpptrace("check", "-p", fmt.Sprint(before.PID())); !strings.Contains(out,
		"is the file's\n") {
		t.Errorf("before: %s%s", out, errs)
	}
	if err := os.Chmod(prog, 0o711); err != nil && !errors.Is(err, syscall.ETXTBSY) {
		t.Fatal(err)
	}
	checkNamed(t, before, "its file was copied up by overlayfs since it was started")
	after := testenv.StartSubject(t, exec.Command(prog))
	w := startTracer(t, "--overhead", "0", "-F", "^steady$", "-o", "x.wpp", "-p",
		fmt.Sprint(after.PID()))
	w.expect("recording process")
	after.Ask(100)
	w.signal(os.Interrupt)
	w.wait(0)
	if n := callsIn(t, w.path("x.wpp"))["steady"]; n != 100 {
		t.Errorf("started again: steady ran %d times, want 100", n)
	}
}

// Another tool's breakpoint where no probe would stand is named by check and plan, with its routine
// and with what it is in the way of; a recording goes on beside it.
func TestBreakpointBesideProbes(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, changesItself, "-O1"), "trap"))
	pid := fmt.Sprint(s.PID())
	s.Ask(1) // it has begun
	for _, command := range []string{"check", "plan"} {
		out, errs, status := wpptrace(command, "-p", pid)
		for _, want := range []string{" in unused: a breakpoint stands there already",
			"a recording is refused where one of its probes would stand there"} {
			if status != exitError || !strings.Contains(out+errs, want) {
				t.Errorf("%s: exit %d, no %q:\n%s%s", command, status, want, out, errs)
			}
		}
	}
	w := startTracer(t, "--overhead", "0", "-F", "^steady$", "-o", "x.wpp", "-p", pid)
	w.expect("recording process")
	s.Ask(100)
	w.signal(os.Interrupt)
	w.wait(0)
	if n := callsIn(t, w.path("x.wpp"))["steady"]; n != 100 {
		t.Errorf("steady ran %d times, want 100", n)
	}
	// coverage goes on beside it, too, and is refused where it would have a probe there
	for only, want := range map[string]int{"^steady$": 0, "^unused$": exitError} {
		_, errs, status := wpptrace("coverage", "-d", "100ms", "-F", only, "-p", pid)
		if status != want || want != 0 && !strings.Contains(errs,
			"a breakpoint stands there already: detach the debugger or other tracer") {
			t.Errorf("coverage of %s: exit %d: %s", only, status, errs)
		}
	}
	s.End()
}

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// A controlGroup is a directory, and how its files are called.
type controlGroup struct {
	dir string
	controlFiles
}

// controlFiles are those of a version of control groups.
type controlFiles struct{ limit, usage, swap, noSwap, peak, kills string }

var (
	filesOfV1 = controlFiles{"memory.limit_in_bytes", "memory.usage_in_bytes",
		"memory.memsw.limit_in_bytes", strconv.Itoa(leastMemory), "memory.max_usage_in_bytes",
		"memory.oom_control"}
	filesOfV2 = controlFiles{"memory.max", "memory.current", "memory.swap.max", "0", "memory.peak",
		"memory.events"}
)

// makeGroup makes a control group that allows the least memory that wpptrace takes, and removes it
// when the test ends.
func makeGroup(t *testing.T) controlGroup {
	t.Helper()
	parents, files := findGroups(t)
	g := controlGroup{controlFiles: files}
	var failed error
	for _, parent := range parents {
		dir := filepath.Join(parent, fmt.Sprintf("wpptrace-test-%d", os.Getpid()))
		err := makeLimited(dir, files.limit)
		if err == nil {
			g.dir = dir
			break
		}
		failed = errors.Join(failed, err)
	}
	if g.dir == "" {
		t.Fatalf("there is a memory controller, but no group can be made: %v", failed)
	}
	t.Cleanup(func() { g.remove(t) })
	g.write(t, g.limit, strconv.Itoa(leastMemory))
	if _, err := os.Stat(filepath.Join(g.dir, g.swap)); err == nil {
		g.write(t, g.swap, g.noSwap)
	}
	return g
}

// findGroups returns the groups under which one may be made, the best first: that of the test, and
// in version 2 the root, for a group that has processes has no groups with limits.
func findGroups(t *testing.T) (parents []string, files controlFiles) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		testenv.Missing(t, err)
	}
	var unified string
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			mount, root := findMount(t, "cgroup", "memory")
			return []string{filepath.Join(mount, strings.TrimPrefix(fields[2], root))}, filesOfV1
		case fields[0] == "0":
			unified = fields[2]
		}
	}
	mount, root := findMount(t, "cgroup2", "rw")
	if controllers, err := os.ReadFile(filepath.Join(mount, "cgroup.controllers")); err != nil ||
		!slices.Contains(strings.Fields(string(controllers)), "memory") {
		testenv.Missing(t, fmt.Errorf("no memory controller: %s %w", controllers, err))
	}
	return []string{filepath.Join(mount, strings.TrimPrefix(unified, root)), mount}, filesOfV2
}

// findMount returns where a file system of a type is mounted that has an option, and which of its
// directories.
func findMount(t *testing.T, kind, option string) (mount, root string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		of, is, _ := strings.Cut(strings.TrimSpace(line), " - ")
		where, what := strings.Fields(of), strings.Fields(is)
		if what[0] == kind && slices.Contains(strings.Split(what[2], ","), option) {
			return where[4], strings.TrimSuffix(where[3], "/")
		}
	}
	testenv.Missing(t, fmt.Errorf("no %s with %s is mounted", kind, option))
	return "", ""
}

// makeLimited makes a group that has a file for its limit. In version 2 its parent has to allow
// that.
func makeLimited(dir, limit string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(dir, limit))
	if errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"),
			[]byte("+memory"), 0)
	}
	if err != nil {
		os.Remove(dir)
	}
	return err
}

// remove removes the group as soon as nobody is in it: wpptrace's guard ends after wpptrace.
func (g controlGroup) remove(t *testing.T) {
	var err error
	testenv.Eventually(t, func() bool {
		err = os.Remove(g.dir)
		return !errors.Is(err, unix.EBUSY)
	}, "nobody is in the control group %s", g.dir)
	if err != nil {
		t.Error(err)
	}
}

// allow has the group allow more memory than it did, and no swapping.
func (g controlGroup) allow(t *testing.T, bytes int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(g.dir, g.swap)); err == nil && g.noSwap != "0" {
		g.write(t, g.swap, strconv.Itoa(bytes)) // of memory and swap together
	}
	g.write(t, g.limit, strconv.Itoa(bytes))
}

func (g controlGroup) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

func (g controlGroup) read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// startTracer runs wpptrace in the group.
func (g controlGroup) startTracer(t *testing.T, args ...string) *tracer {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec wpptrace "$@"`,
		filepath.Join(g.dir, "cgroup.procs")}, args...)...)
	cmd.Dir = t.TempDir()
	return runTracer(t, cmd)
}

// isKept fails the test if the group ever took more than it is allowed, or the kernel killed
// anybody for that.
func (g controlGroup) isKept(t *testing.T) {
	t.Helper()
	// the kernel takes some pages whether there is room or not: 4 KiB was seen
	const forced = 1 << 20
	peak, err := strconv.Atoi(g.read(t, g.peak))
	if err != nil || peak > leastMemory+forced {
		t.Errorf("%d bytes of memory were taken (%v), %d are allowed", peak, err, leastMemory)
	}
	kills := strings.Split(g.read(t, g.kills), "\n")
	if !slices.Contains(kills, "oom_kill 0") {
		t.Errorf("the kernel has killed: %q", kills)
	}
	t.Logf("%.1f MiB of memory were taken", float64(peak)/(1<<20))
}

// hasLosses says whether any events were lost of those that a tracer was to have.
func hasLosses(t *testing.T, tracer int) bool {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", tracer))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // closed meanwhile
		}
		var id ebpf.MapID
		_, after, _ := strings.Cut(string(text), "\nmap_id:")
		if n, _ := fmt.Sscan(after, &id); n == 1 && holdsLosses(t, id) {
			return true
		}
	}
	return false
}

// holdsLosses says whether a map is that of losses, and has any.
func holdsLosses(t *testing.T, id ebpf.MapID) bool {
	t.Helper()
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Name != "losses" {
		return false
	}
	key := make([]byte, m.KeySize())
	err = m.NextKey(nil, key)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// In a control group of 64 MiB, as containers are, a stream of paths that cannot be compressed is
// recorded, for a minute with make soak: wpptrace lives, keeps within it, and reports what it
// missed. All else is exact.
func TestSmallControlGroup(t *testing.T) {
	group := makeGroup(t)
	program := compileRandomPaths(t)
	bytes := learnSteps(t, program)
	s := testenv.Start(t, exec.Command(program))
	soak := os.Getenv("WPPTRACE_SOAK") != ""
	args := []string{"-p", strconv.Itoa(s.PID()), "--overhead", "0", "--max-slowdown", "0", "-o",
		"x.wpp"}
	if soak {
		args = append(args, "-d", "60s")
	}
	w := group.startTracer(t, args...)
	awaits := func(what string, is func() bool) {
		t.Helper()
		testenv.Eventually(t, func() bool { return is() || stateOf(t, w.cmd.Process.Pid) == 'Z' },
			"there is a %s", what)
		if !is() {
			w.wait(0)
			t.Fatalf("it has ended without a %s", what)
		}
	}
	awaits("probe", func() bool { return probesOf(t, s.PID()) > 0 })
	time.Sleep(time.Second)
	w.signal(unix.SIGSTOP) // what it misses meanwhile is a gap
	awaits("loss", func() bool { return hasLosses(t, w.cmd.Process.Pid) })
	w.signal(unix.SIGCONT)
	awaits("segment", func() bool { // for which there is no memory
		files, err := filepath.Glob(w.path(".x.wpp.*"))
		return err == nil && len(files) > 0
	})
	if !soak { // a part of the minute
		time.Sleep(time.Second)
		w.signal(os.Interrupt)
	}
	w.wait(0)
	group.isKept(t)
	if state := stateOf(t, s.PID()); state != 'R' {
		t.Errorf("the program is in state %c", state)
	}
	s.IsClean()
	if out, errs := w.stdout.String(), w.errs.String(); !strings.Contains(out,
		"hot subpaths, which cover") || !strings.Contains(errs,
		"\nlost: ") || !strings.Contains(errs,
		"where the ring buffer was full") || strings.Contains(errs, "may be wrong") {
		t.Errorf("printed %q, printed %q", out, errs)
	}
	followSteps(t, w.path("x.wpp"), bytes)
}

// Probes take memory of the process, on account of its own control group. Where that leaves it
// little, none is put in: the kernel would kill it.
func TestFullControlGroup(t *testing.T) {
	group := makeGroup(t)
	program := exec.Command("sh", "-c",
		`echo $$ >"$0" && exec bash -c 'echo; read -r status; exit $status'`,
		filepath.Join(group.dir, "cgroup.procs"))
	stdin, inErr := program.StdinPipe()
	stdout, outErr := program.StdoutPipe()
	if err := errors.Join(inErr, outErr, program.Start()); err != nil {
		t.Fatal(err)
	}
	defer program.Process.Kill()
	if _, err := stdout.Read(make([]byte, 1)); err != nil { // it is at work
		t.Fatal(err)
	}
	pid := program.Process.Pid
	used, err := strconv.Atoi(group.read(t, group.usage))
	if err != nil {
		t.Fatal(err)
	}
	group.write(t, group.limit, strconv.Itoa(used+1<<20))
	args := []string{"-p", strconv.Itoa(pid), "-d", "100ms", "-o",
		filepath.Join(t.TempDir(), "x.wpp")}
	refused := startTracer(t, args...)
	refused.wait(1)
	if errs := refused.errs.String(); !strings.Contains(errs, "MiB of its memory") ||
		!strings.Contains(errs, "-F") {
		t.Errorf("printed %q", errs)
	}
	if n := probesOf(t, pid); n != 0 {
		t.Errorf("%d probes stand", n)
	}
	group.write(t, group.limit, strconv.Itoa(leastMemory))
	startTracer(t, args...).wait(0)
	if _, err := io.WriteString(stdin, "7\n"); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); program.ProcessState.ExitCode() != 7 {
		t.Errorf("it ended with %v, want exit status 7", err)
	}
}

// What is only tried there finds room, too.
func TestCanaryInSmallControlGroup(t *testing.T) {
	group, s := makeGroup(t), testenv.Start(t, exec.Command(compileRandomPaths(t)))
	w := group.startTracer(t, "plan", "--canary", "-p", strconv.Itoa(s.PID()))
	w.wait(0)
	group.isKept(t)
	s.IsClean()
	if !strings.Contains(w.stdout.String(), "\ncanary ") {
		t.Errorf("it printed\n%s", w.stdout.String())
	}
}

// A recording of a few MiB, whose threads take more than the group allows when all are laid out at
// once, can be asked there all the same.
func TestQueriesInSmallControlGroup(t *testing.T) {
	const threads, length = 3000, 700
	group := makeGroup(t)
	path := filepath.Join(t.TempDir(), "x.wpp")
	s := &wpp.Snapshot{Symbols: make([]wpp.Symbol, 40)}
	for i := range s.Symbols {
		s.Symbols[i] = wpp.Symbol{IsMark: true, N: uint64(i)}
	}
	source := rand.New(rand.NewPCG(1, 2))
	for tid := range threads {
		g := sequitur.New()
		for range length {
			g.Append(source.Uint32N(40))
		}
		s.Threads = append(s.Threads, wpp.Thread{TID: tid, Grammar: wpp.FromSequitur(g)})
	}
	must(t, store.WriteFile(path, s))
	for _, query := range []string{"stat", "hot"} {
		w := group.startTracer(t, query, path)
		w.wait(0)
		group.isKept(t)
	}
}

const largeCode = `
asm(".text; .rept 9216; .cfi_startproc; .skip 1023, 0x90; ret; .cfi_endproc; .endr");
`

// A library for which there is no room is not traced, and a line says so; the program is.
func TestLargeLibraryInControlGroup(t *testing.T) {
	library := testenv.CompileC(t, largeCode, "-shared", "-fPIC")
	program := testenv.CompileC(t, `
#include <dlfcn.h>
volatile int sink;
__attribute__((noinline)) void step(int i) { if (i % 3) sink += i; else sink ^= i; }
int main(int c, char **v)
{
	if (!dlopen(v[1], RTLD_NOW))
		return 1;
	for (int i = 0;; i++)
		step(i);
}
`, "-O1")
	s := testenv.Start(t, exec.Command(program, library))
	testenv.Eventually(t, func() bool {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID()))
		return err == nil && strings.Contains(string(maps), library)
	}, "the library is loaded")
	group := makeGroup(t)
	w := group.startTracer(t, "-p", strconv.Itoa(s.PID()), "--lib", filepath.Base(library), "-d",
		"1s", "-o", "x.wpp")
	w.wait(0)
	group.isKept(t)
	if errs := w.errs.String(); strings.Count(errs, " is not traced: ") != 1 || !strings.Contains(
		errs, " MB: have them allow it more, or run wpptrace outside of them\n") {
		t.Errorf("printed %q", errs)
	}
	s.IsClean()
}

// A program of 9 MB of code is traced in a control group of 400 MiB, by what is hot. In one of 64
// MiB it is refused, in one line that says what to do: the kernel would kill wpptrace.
func TestLargeProgramInControlGroup(t *testing.T) {
	const room = 400 << 20
	program := testenv.CompileC(t, largeCode+`
volatile int sink;
__attribute__((noinline)) void step(int i) { if (i % 3) sink += i; else sink ^= i; }
int main(void) { for (int i = 0;; i++) step(i); }
`, "-O1")
	s := testenv.Start(t, exec.Command(program))
	group := makeGroup(t)
	pid := strconv.Itoa(s.PID())
	refused := group.startTracer(t, "-p", pid, "-d", "1s", "-o", "x.wpp")
	refused.wait(1)
	if errs := refused.errs.String(); strings.Count(errs, "\n") != 1 ||
		!strings.Contains(errs, " MB of memory, and the control groups of wpptrace leave it ") ||
		!strings.HasSuffix(errs, "have them allow it more, or run wpptrace outside of them\n") {
		t.Errorf("printed %q", errs)
	}
	s.IsClean()
	group.allow(t, room)
	w := group.startTracer(t, "-p", pid, "-d", "1s", "-o", "x.wpp")
	w.wait(0)
	if kills := group.read(t, group.kills); !strings.Contains(kills, "oom_kill 0") {
		t.Errorf("the kernel has killed: %q", kills)
	}
	if out := w.stdout.String(); !strings.Contains(out, "step") {
		t.Errorf("printed %q, printed %q", out, w.errs.String())
	}
	s.IsClean()
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/query"
)

// A controlGroup is a directory, and how its files are called.
type controlGroup struct {
	dir string
	controlFiles
}

// controlFiles are those of a version of control groups.
type controlFiles struct{ limit, swap, noSwap, peak, kills string }

var (
	filesOfV1 = controlFiles{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", strconv.Itoa(leastMemory), "memory.max_usage_in_bytes", "memory.oom_control"}
	filesOfV2 = controlFiles{"memory.max", "memory.swap.max", "0", "memory.peak", "memory.events"}
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
	if controllers, err := os.ReadFile(filepath.Join(mount, "cgroup.controllers")); err != nil || !slices.Contains(strings.Fields(string(controllers)), "memory") {
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

// makeLimited makes a group that has a file for its limit. In version 2 its parent has to be told
// that it has.
func makeLimited(dir, limit string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(dir, limit))
	if errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	if err != nil {
		os.Remove(dir)
	}
	return err
}

// remove removes the group as soon as nobody is in it: wpptrace's guard ends after wpptrace.
func (g controlGroup) remove(t *testing.T) {
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		if err = os.Remove(g.dir); !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
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
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec wpptrace "$@"`, filepath.Join(g.dir, "cgroup.procs")}, args...)...)
	cmd.Dir = t.TempDir()
	return runTracer(t, cmd)
}

// isKept fails the test if the group ever took more than it is allowed, or the kernel killed
// anybody for that.
func (g controlGroup) isKept(t *testing.T) {
	t.Helper()
	peak, err := strconv.Atoi(g.read(t, g.peak))
	if err != nil || peak > leastMemory {
		t.Errorf("%d bytes of memory were taken (%v), %d are allowed", peak, err, leastMemory)
	}
	kills := strings.Split(g.read(t, g.kills), "\n")
	if !slices.Contains(kills, "oom_kill 0") {
		t.Errorf("the kernel has killed: %q", kills)
	}
	t.Logf("%.1f MiB of memory were taken", float64(peak)/(1<<20))
}

// randomPaths is a program whose paths cannot be compressed: which path of step is next says a byte
// of a random sequence. It takes so many steps, or never ends.
const randomPaths = `
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t sink;
__attribute__((noinline)) static void step(uint64_t r)
{
	if (r & 1) sink += r; else sink ^= r;
	if (r & 2) sink += 3; else sink ^= 5;
	if (r & 4) sink *= 3; else sink ^= 7;
	if (r & 8) sink *= 7; else sink ^= 9;
	if (r & 16) sink *= 5; else sink -= 9;
	if (r & 32) sink *= 9; else sink -= 11;
	if (r & 64) sink *= 11; else sink -= 13;
	if (r & 128) sink *= 13; else sink -= 17;
}
int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], 0, 0) : UINT64_MAX, x = 88172645463325252;
	while (n--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		step(x);
	}
	return 0;
}`

func compileRandomPaths(t *testing.T) (program string) {
	return compileC(t, randomPaths, "-O1", "-fno-if-conversion", "-fno-if-conversion2", "-fno-tree-loop-if-convert")
}

// startEndless runs a program that does not end by itself.
func startEndless(t *testing.T, program string) *subject {
	t.Helper()
	s := &subject{t: t, cmd: exec.Command(program)}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	return s
}

// A sequence is the one of that program: its state.
type sequence uint64

const beginning sequence = 88172645463325252

func (s *sequence) next() byte {
	*s ^= *s << 13
	*s ^= *s >> 7
	*s ^= *s << 17
	return byte(*s)
}

// goesOn says whether these bytes are next, and takes them if so.
func (s *sequence) goesOn(with []byte) bool {
	at := *s
	for _, b := range with {
		if at.next() != b {
			return false
		}
	}
	*s = at
	return true
}

// find looks for these bytes, before which there may be so many others, and takes all of them.
func (s *sequence) find(bytes []byte, most uint64) (skipped uint64, ok bool) {
	for at := *s; skipped <= most; skipped++ {
		if at.goesOn(bytes) {
			*s = at
			return skipped, true
		}
		at.next()
	}
	return 0, false
}

// dumpSteps calls back for each whole path of step that a snapshot has, in order, and for the
// number of events of each gap.
func dumpSteps(t *testing.T, snapshot string, path func(number string), gap func(events uint64)) {
	t.Helper()
	dump := exec.Command("wpptrace", "dump", snapshot)
	dump.Stderr = os.Stderr
	pipe, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { dump.Process.Kill(); dump.Wait() }()
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "#gap "); ok {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			gap(n)
		}
		if f := strings.Split(lines.Text(), "\t"); len(f) == 6 && f[1] == "step" && f[3] == "entry" && f[4] == "return" {
			path(f[2])
		}
	}
	if err := errors.Join(lines.Err(), dump.Wait()); err != nil {
		t.Fatal(err)
	}
}

// learnSteps records the program from its start and returns the byte that each path of step stands
// for. That there is such a byte proves the recording.
func learnSteps(t *testing.T, program string) map[string]byte {
	t.Helper()
	const steps = 20_000
	w := startTracer(t, "-q", "-o", "y.wpp", "--", program, strconv.Itoa(steps))
	w.wait(0)
	s, n := beginning, 0
	bytes, paths := map[string]byte{}, map[byte]string{}
	dumpSteps(t, w.path("y.wpp"), func(number string) {
		n++
		b := s.next()
		if was, ok := bytes[number]; ok && was != b {
			t.Fatalf("step %d: path %s is that of %d, and was that of %d", n, number, b, was)
		}
		if was, ok := paths[b]; ok && was != number {
			t.Fatalf("step %d: the path of %d is %s, and was %s", n, b, number, was)
		}
		bytes[number], paths[b] = b, number
	}, func(events uint64) { t.Errorf("%d events were lost", events) })
	if n != steps || len(bytes) != 256 {
		t.Fatalf("%d steps of %d, %d paths of 256", n, steps, len(bytes))
	}
	return bytes
}

// A trail is the recorded steps, followed through the sequence.
type trail struct {
	t      *testing.T
	at     sequence
	may    uint64 // steps that may be missing before those that are not found yet; 0: none, and none are
	few    []byte // that are not found yet
	steps  int
	missed uint64
	gaps   int
	lost   uint64
}

// enough steps are found in one place only.
const enough = 16

func (f *trail) step(b byte) {
	f.steps++
	switch {
	case f.may == 0:
		if want := f.at.next(); b != want {
			f.t.Fatalf("step %d is %d, not %d, and no gap is there", f.steps, b, want)
		}
	case len(f.few) < enough-1:
		f.few = append(f.few, b)
	default:
		if skipped := f.find(&f.at, append(f.few, b)); f.gaps > 0 { // before the first, it was not traced yet
			f.missed += skipped
		}
		f.may, f.few = 0, nil
	}
}

// gap says that events are missing, of which each step makes one or more, and parts of two steps
// besides.
func (f *trail) gap(events uint64) {
	f.gaps++
	f.lost += events
	f.rest()
	f.may += events + 2
}

// rest takes what came to its end before its place was known, which could be in several.
func (f *trail) rest() {
	at := f.at
	f.find(&at, f.few)
	f.may += uint64(len(f.few))
	f.few = nil
}

func (f *trail) find(s *sequence, bytes []byte) (skipped uint64) {
	skipped, ok := s.find(bytes, f.may)
	if !ok {
		f.t.Fatalf("the steps before step %d, %d, are not among the next %d", f.steps, bytes, f.may)
	}
	return skipped
}

// followSteps compares the snapshot's steps with the sequence: they are a part of it but for gaps,
// which are all in the figures.
func followSteps(t *testing.T, snapshot string, bytes map[string]byte) {
	t.Helper()
	s, err := wpp.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	const before = 1 << 34 // steps that the program can have taken until it was traced, in minutes
	f := &trail{t: t, at: beginning, may: before}
	dumpSteps(t, snapshot, func(number string) {
		b, ok := bytes[number]
		if !ok {
			t.Fatalf("step %d: nobody knows path %s", f.steps, number)
		}
		f.step(b)
	}, f.gap)
	f.rest()
	t.Logf("%d steps of %d paths, %d are missing in %d gaps of %d events", f.steps, query.NewStat(s, 0).Paths, f.missed, f.gaps, f.lost)
	if g := s.Figures; g.Gaps != uint64(f.gaps) || g.Lost != f.lost || g.Anomalies != 0 {
		t.Errorf("the figures have %d lost in %d gaps, the stream %d in %d; %d anomalies", g.Lost, g.Gaps, f.lost, f.gaps, g.Anomalies)
	}
	if f.gaps == 0 || f.steps < 100_000 {
		t.Error("the test does not test")
	}
}

// In a control group of 64 MiB, as containers are, a stream of paths that cannot be compressed is
// recorded, for a minute with make soak: wpptrace lives, keeps within it, and tells what it missed.
// All else is exact.
func TestSmallControlGroup(t *testing.T) {
	group := makeGroup(t)
	program := compileRandomPaths(t)
	bytes := learnSteps(t, program)
	s := startEndless(t, program)
	w := group.startTracer(t, "-q", "-p", strconv.Itoa(s.pid()), "-d", "60s", "--overhead", "0", "--max-slowdown", "0", "-o", "x.wpp")
	awaits := func(what string, is func() bool) {
		t.Helper()
		for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
			if stateOf(t, w.cmd.Process.Pid) == 'Z' || time.Since(began) > patience {
				w.wait(0)
				t.Fatalf("no %s", what)
			}
		}
	}
	awaits("probes", func() bool { return probesOf(t, s.pid()) > 0 })
	time.Sleep(time.Second)
	w.signal(unix.SIGSTOP) // what it misses meanwhile is a gap
	time.Sleep(3 * time.Second)
	w.signal(unix.SIGCONT)
	awaits("segment", func() bool { // for which there is no memory
		files, err := filepath.Glob(w.path(".x.wpp.*"))
		return err == nil && len(files) > 0
	})
	if os.Getenv("WPPTRACE_SOAK") == "" { // a part of the minute
		time.Sleep(time.Second)
		w.signal(os.Interrupt)
	}
	w.wait(0)
	group.isKept(t)
	if state := stateOf(t, s.pid()); state != 'R' {
		t.Errorf("the program is in state %c", state)
	}
	s.isClean()
	if errs := w.errs.String(); !strings.HasPrefix(errs, "lost: ") || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "where the ring buffer was full") {
		t.Errorf("told %q", errs)
	}
	followSteps(t, w.path("x.wpp"), bytes)
}

// What is only tried there finds room, too.
func TestCanaryInSmallControlGroup(t *testing.T) {
	group, s := makeGroup(t), startEndless(t, compileRandomPaths(t))
	w := group.startTracer(t, "plan", "--canary", "-p", strconv.Itoa(s.pid()))
	w.wait(0)
	group.isKept(t)
	s.isClean()
	if !strings.Contains(w.stdout.String(), "\ncanary ") {
		t.Errorf("it printed\n%s", w.stdout.String())
	}
}

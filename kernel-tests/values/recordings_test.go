package valuetests

import (
	"bufio"
	"context"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/query"
	"wpptrace/query/values"
)

// mixed are what instructions of mix_one, of testdata/mix.c, leave in rax, one after the other.
func mixed(x uint64) []uint64 {
	all, own := []uint64{x}, [6]uint64{}
	for i := 5; i > 0; i-- {
		x ^= x & 0xff * 0x9e3779b97f4a7c15
		all = append(all, x)
		if x&1 != 0 {
			x *= 0x5851f42d
		} else {
			x = bits.RotateLeft64(x, 13)
		}
		all, own[i] = append(all, x), x
	}
	return append(all, x^own[1], x^own[1]+own[5])
}

// A mixing is a snapshot of testdata/mix.c.
type mixing struct {
	*exact.ValueRecord
	wet.Counts
	compared, unknown int // values of rax in mix_one
	gaps              int
	behind            int // of these, the most that are known one after the other behind a gap
	wrong             int
}

// readMixing reads a snapshot, and fails the test unless each value that is known in mix_one is
// what follows from the argument, and all hits were as worked out.
func readMixing(t *testing.T, file string) *mixing {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := wet.CountsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tracer.ReadValues(t.Context(), file, 0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Routines, func(x truth.Routine) bool { return x.Name == "mix_one" })
	if i < 0 {
		t.Fatal("mix_one is not traced")
	}
	m := &mixing{ValueRecord: r, Counts: *counts}
	for _, v := range r.Streams {
		m.read(v, r.Routines[i])
	}
	if m.wrong > 0 || m.compared == 0 || m.Wrong > 0 || m.Damaged > 0 {
		t.Errorf("%d of %d values are wrong; %+v", m.wrong, m.compared, m.Counts)
	}
	return m
}

func (m *mixing) read(v *truth.ValueStream, one truth.Routine) {
	var next []uint64 // values that follow; nil: it is not known
	marks, last := v.Marks, 0
	for i := range v.Steps {
		s := &v.Steps[i]
		for ; len(marks) > 0 && marks[0].Index <= i; marks = marks[1:] {
			if next = nil; marks[0].Kind == "gap" {
				m.gaps++
				last = 0
			}
		}
		if s.PC < one.Start || s.PC >= one.End {
			continue
		}
		for _, r := range s.Registers {
			const rax = 0
			switch {
			case r.Register != rax:
				continue
			case r.Sureness == truth.Unknown:
				m.unknown++
				last = 0
				next = next[min(len(next), 1):]
				continue
			case s.PC == one.Start:
				next = mixed(r.Value)
			case len(next) == 0:
				continue
			}
			if m.compared, last = m.compared+1, last+1; next[0] != r.Value {
				m.wrong++
			}
			if m.gaps > 0 {
				m.behind = max(m.behind, last)
			}
			next = next[1:]
		}
	}
}

// mix builds testdata/mix.c.
func mix(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "mix")
	gcc := exec.CommandContext(t.Context(), "gcc", "-O2", "-pthread", "-o", path,
		"testdata/mix.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// forever is a process of a program that mixes until the test is over.
func forever(t *testing.T, program string) *os.Process {
	t.Helper()
	cmd := exec.Command(program, "forever")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
			t.Errorf("the process has not outlived its recording: %v", err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	return cmd.Process
}

// A tracing is wpptrace while it records.
type tracing struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of stderr
}

// beginMixing begins to record mix_one and mix_round, and returns when the probes report.
func beginMixing(t *testing.T, file string, flags ...string) *tracing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	x := &tracing{t: t, lines: make(chan string, 1000)}
	x.cmd = exec.CommandContext(ctx, tracer.Path(),
		append([]string{"values", "-o", file, "-F", "^mix_"}, flags...)...)
	stderr, err := x.cmd.StderrPipe()
	if err == nil {
		err = x.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			x.lines <- scan.Text()
		}
		close(x.lines)
	}()
	x.waitFor("recording process")
	return x
}

// waitFor waits until wpptrace has said something.
func (x *tracing) waitFor(text string) {
	x.t.Helper()
	var all []string
	for line := range x.lines {
		if strings.Contains(line, text) {
			return
		}
		all = append(all, line)
	}
	x.t.Fatalf("wpptrace does not say %q, but %q", text, all)
}

func (x *tracing) signal(s os.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}

// end waits until wpptrace has ended, by itself or by this status.
func (x *tracing) end(status int) {
	x.t.Helper()
	var all []string
	for line := range x.lines {
		all = append(all, line)
	}
	_ = x.cmd.Wait() // the status says it
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Fatalf("wpptrace has ended with status %d, want %d: %q", got, status, all)
	}
}

// TestRecordingsOfCommands: whatever a command does, what is recorded of it is right, and nothing
// of it is missing.
func TestRecordingsOfCommands(t *testing.T) {
	program := mix(t)
	for how, c := range map[string]struct {
		flags  []string
		status int
		calls  int // of mix_one
	}{
		"stop":    {[]string{"--on-overflow", "stop", "--ring-size", "65536"}, 0, 1000},
		"exit":    {nil, 3, 1000},
		"fork":    {nil, 0, 1400},
		"exec":    {nil, 0, 1000},
		"fault":   {nil, 128 + int(syscall.SIGSEGV), 1001},
		"killed":  {nil, 128 + int(syscall.SIGKILL), 1000},
		"threads": {nil, 0, 6400},
		"brief":   {nil, 0, 10000},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.wpp")
			beginMixing(t, file, append(c.flags, "--", program, how)...).end(c.status)
			m := readMixing(t, file)
			const each = 13 // values of rax
			want := each * c.calls
			if how == "fault" {
				want -= each - 3 // it ends at the first store
			}
			if m.compared != want || m.unknown > 0 || m.Missing > 0 {
				t.Errorf("%d values are known, %d are not, want %d; %+v", m.compared, m.unknown,
					want, m.Counts)
			}
		})
	}
}

// TestRecordingsOfProcesses: in windows, of one thread and until it is too slow, what is recorded
// of a process at work is right, and it goes on.
func TestRecordingsOfProcesses(t *testing.T) {
	program := mix(t)
	for name, flags := range map[string][]string{
		"windows":  {"-d", "2s", "--overhead", "20", "--window", "3ms", "--max-stall", "50ms"},
		"slow":     {"--overhead", "0", "--max-slowdown", "2"},
		"duration": {"-d", "200ms", "--overhead", "0", "--max-slowdown", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.wpp")
			p := strconv.Itoa(forever(t, program).Pid)
			beginMixing(t, file, append(flags, "-p", p)...).end(0)
			if m := readMixing(t, file); m.Missing > 0 || m.unknown*100 > m.compared {
				t.Errorf("%d values are known, %d are not; %+v", m.compared, m.unknown, m.Counts)
			}
		})
	}
}

// TestLossOfValues: where the buffer was full, what is known is right, and what comes behind is
// known again.
func TestLossOfValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.wpp")
	p := forever(t, mix(t))
	x := beginMixing(t, file, "--overhead", "0", "--max-slowdown", "0", "--ring-size", "65536",
		"--strict", "-p", strconv.Itoa(p.Pid))
	x.signal(syscall.SIGSTOP)
	waitForCPUTime(t, p.Pid, 50*time.Millisecond)
	x.signal(syscall.SIGCONT)
	waitForCPUTime(t, p.Pid, 50*time.Millisecond)
	x.signal(os.Interrupt)
	const lost = 3
	x.end(lost)
	m := readMixing(t, file)
	if m.gaps == 0 || m.behind < 100 {
		t.Errorf("%d gaps; at most %d values are known in a row behind one", m.gaps, m.behind)
	}
}

// waitForCPUTime waits until a process has used so much more.
func waitForCPUTime(t *testing.T, pid int, more time.Duration) {
	t.Helper()
	used := func() time.Duration {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
		user, _ := strconv.Atoi(fields[12])
		system, _ := strconv.Atoi(fields[13])
		return time.Duration(user+system) * 10 * time.Millisecond
	}
	for until := used() + more; used() < until; {
		time.Sleep(time.Millisecond)
	}
}

// TestSnapshotsOfValues: snapshots in the middle have the values that later ones have of the same
// time, survive the end of wpptrace, and the process does.
func TestSnapshotsOfValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.wpp")
	p := forever(t, mix(t))
	x := beginMixing(t, file, "--overhead", "0", "--max-slowdown", "0", "-p",
		strconv.Itoa(p.Pid))
	const snapshots = 3
	recorded := uint64(0) // instructions
	for i := range snapshots {
		testenv.Eventually(t, func() bool {
			waitForCPUTime(t, p.Pid, 20*time.Millisecond)
			x.signal(syscall.SIGUSR2)
			x.waitFor("recording goes on")
			before := recorded
			recorded = instructionsOf(t, file)
			return recorded > before
		}, "snapshot %d has more instructions than the one before", i)
		if err := os.Link(file, filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	x.signal(os.Kill)
	x.end(-1)
	var before []truth.ReportedStep
	for i := range snapshots {
		m := readMixing(t, filepath.Join(dir, strconv.Itoa(i)))
		now := m.Streams[0].Steps
		if len(now) <= len(before) {
			t.Fatalf("snapshot %d has %d instructions, the one before %d", i, len(now), len(before))
		}
		for k := range before {
			staysKnown(t, &before[k], &now[k])
		}
		before = now
	}
}

// instructionsOf counts the executed instructions that a snapshot has values of.
func instructionsOf(t *testing.T, file string) uint64 {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	known, err := values.Count(s)
	if err != nil {
		t.Fatal(err)
	}
	return known.Instructions
}

// staysKnown fails the test unless what is known of an instruction is known later on, and the same.
func staysKnown(t *testing.T, early, late *truth.ReportedStep) {
	t.Helper()
	same := early.PC == late.PC && len(early.Registers) == len(late.Registers)
	for i, r := range early.Registers {
		same = same && (r.Sureness == truth.Unknown ||
			r.Value == late.Registers[i].Value && r.Sureness <= late.Registers[i].Sureness)
	}
	if !same {
		t.Fatalf("%+v is %+v later on", early, late)
	}
}

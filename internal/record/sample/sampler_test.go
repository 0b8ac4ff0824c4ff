package sample

import (
	"bufio"
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
	"unsafe"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/testenv"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// compile compiles a program of testdata.
func compile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(source, ".c"))
	args := append(
		[]string{"-O1", "-g", "-o", program, filepath.Join("testdata", source)},
		flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	return program
}

// A running is a program that was started, stopped at its first instruction.
type running struct {
	*target.Process
	cmd *exec.Cmd
	out *bufio.Reader
	in  interface{ Close() error }
}

// start starts a program, which ends when its standard input is closed.
func start(t testing.TB, program string, args ...string) *running {
	t.Helper()
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: cmd, out: bufio.NewReader(out), in: in}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	r.line(t) // it has begun
	if r.Process, err = target.Open(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *running) line(t testing.TB) string {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func sampler(t testing.TB, p *target.Process, o Options) *Sampler {
	t.Helper()
	s, err := Start(p, o)
	if errors.Is(err, ErrNotAllowed) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// take adds up what comes until the process has used so much.
func take(t testing.TB, s *Sampler, used time.Duration) (c Counts) {
	t.Helper()
	for began := time.Now(); c.CPUTime < used; {
		time.Sleep(100 * time.Millisecond)
		more, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		if c.Add(more); time.Since(began) > testenv.Patience {
			t.Fatalf("the process has used %v only", c.CPUTime)
		}
	}
	return c
}

// routines are the samples of a program by routine.
func routines(t testing.TB, c Counts, program string) map[string]uint64 {
	t.Helper()
	im, err := image.OpenFile(program)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	for _, i := range c.Images {
		if i.Name == program {
			return Sum(i, func(offset uint64) string {
				at, _ := im.Address(offset)
				for _, s := range im.Symbols() {
					if s.Addr <= at && at < s.Addr+s.Size {
						return s.Name
					}
				}
				return "?"
			})
		}
	}
	return nil
}

// TestShares: a program that knows by its own clock what it has spent where is sampled. Where
// interrupts are dear the samples are few, and chance is given more of them.
func TestShares(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds of CPU time")
	}
	program := compile(t, "shares.c", "-lm")
	p := start(t, program)
	s := sampler(t, p.Process, Options{})
	before := p.shares(t)
	c := take(t, s, 2*time.Second)
	wrong := wrongShares(t, program, c, before, p.shares(t))
	for c.CPUTime < 10*time.Second && len(wrong) > 0 {
		c.Add(take(t, s, 2*time.Second))
		wrong = wrongShares(t, program, c, before, p.shares(t))
	}
	for _, w := range wrong {
		t.Error(w)
	}
	if c.Lost > 0 || c.Unknown > c.Total()/100 {
		t.Errorf("of %d samples %d are lost and %d unknown", c.Total(), c.Lost, c.Unknown)
	}
	if n := time.Duration(c.Total()) * s.Period(); n < c.CPUTime*85/100 || n > c.CPUTime*105/100 {
		t.Errorf("%d samples with a period of %v, in %v", c.Total(), s.Period(), c.CPUTime)
	}
}

// wrongShares are the parts of shares.c whose share is another than the program's own clock has it.
func wrongShares(t testing.TB, program string, c Counts, before, after []float64) (list []string) {
	by := routines(t, c, program)
	libm := uint64(0)
	for _, i := range c.Images {
		if strings.Contains(i.Name, "libm") {
			libm += i.Total()
		}
	}
	jit := uint64(0)
	for _, u := range c.JIT {
		jit += u.Names["made at run time"]
	}
	user := 0.0
	for i := range 4 {
		user += after[i] - before[i]
	}
	for i, n := range []uint64{by["seven"], by["three"], libm + by["waves"], jit} {
		share := samples.Share{Samples: n, Of: c.Total() - c.Kernel}
		if want := (after[i] - before[i]) / user; !near(share, want) {
			list = append(list, fmt.Sprintf("part %d: share %.3f of user mode, by its own clock %.3f",
				i, share.Value(), want))
		}
	}
	// interrupts that come in other parts are in the kernel, too
	kernel := after[4] - before[4]
	share, least := samples.Share{Samples: c.Kernel, Of: c.Total()}, kernel/(user+kernel)
	if share.Value() < least && !near(share, least) {
		list = append(list, fmt.Sprintf("kernel: share %.3f, by its own clock %.3f", share.Value(),
			least))
	}
	return list
}

// near reports whether a share is within 3 points of another, or as near as chance has it 999 times
// of 1000.
func near(s samples.Share, other float64) bool {
	const points = 0.03
	lo, hi := s.Interval()
	return math.Abs(s.Value()-other) < max(points, (hi-lo)*0.85)
}

// shares asks the program what it has spent where.
func (r *running) shares(t testing.TB) (list []float64) {
	t.Helper()
	if err := r.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for f := range strings.FieldsSeq(r.line(t)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// TestSharesAsPerfHasThem compares with perf, where it is installed.
func TestSharesAsPerfHasThem(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds of CPU time")
	}
	perf, err := exec.LookPath("perf")
	if err != nil {
		t.Skip(err)
	}
	program := compile(t, "shares.c", "-lm")
	p := start(t, program)
	s := sampler(t, p.Process, Options{})
	data := filepath.Join(t.TempDir(), "perf.data")
	record := exec.Command(perf, "record", "-q", "-e", "cpu-clock", "-F", "499", "-o", data, "-p",
		strconv.Itoa(p.PID), "sleep", "4")
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- record.Wait() }()
	var c Counts
	for ended := false; !ended; {
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		case <-time.After(200 * time.Millisecond):
		}
		more, err := s.Take()
		if err != nil {
			t.Fatal(err)
		}
		c.Add(more)
	}
	out, err := exec.Command(perf, "report", "-q", "-i", data, "--sort", "sym", "--stdio").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]float64{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSuffix(f[0], "%"), 64)
		if err != nil {
			continue
		}
		if f[1] == "[k]" {
			theirs["kernel"] += v / 100
		} else {
			theirs[f[2]] += v / 100
		}
	}
	ours := routines(t, c, program)
	ours["kernel"] = c.Kernel
	for _, name := range []string{"seven", "three", "kernel"} {
		share := samples.Share{Samples: ours[name], Of: c.Total()}
		t.Logf("%s: %.3f, by perf %.3f", name, share.Value(), theirs[name])
		if !near(share, theirs[name]) {
			t.Errorf("%s: %.3f, by perf %.3f", name, share.Value(), theirs[name])
		}
	}
}

// TestNewThreads: threads that come and go are sampled as they come.
func TestNewThreads(t *testing.T) {
	program := compile(t, "threads.c", "-pthread")
	p := start(t, program)
	s := sampler(t, p.Process, Options{})
	c := take(t, s, 500*time.Millisecond)
	by := routines(t, c, program)
	if share := (samples.Share{Samples: by["work"], Of: c.Total()}); share.Value() < 0.8 {
		t.Errorf("of %d samples %d are in threads: %v, kernel %d", share.Of, share.Samples, by,
			c.Kernel)
	}
	if n := time.Duration(c.Total()) * s.Period(); n < c.CPUTime*8/10 || n > c.CPUTime*11/10 {
		t.Errorf("%d samples with a period of %v, in %v", c.Total(), s.Period(), c.CPUTime)
	}
}

// TestForksAreOthers: what a child of the process does is none of its time.
func TestForksAreOthers(t *testing.T) {
	p := start(t, compile(t, "forks.c"))
	s := sampler(t, p.Process, Options{})
	time.Sleep(500 * time.Millisecond)
	c, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	if c.Total() > 20 {
		t.Errorf("%d samples of a process that sleeps while its child works", c.Total())
	}
}

// TestExec: addresses of the program before are not taken for those of the one after.
func TestExec(t *testing.T) {
	program := compile(t, "execs.c")
	p := start(t, program)
	s := sampler(t, p.Process, Options{})
	before := take(t, s, 300*time.Millisecond)
	if by := routines(t, before, program); by["first"] == 0 {
		t.Errorf("before exec: %v", by)
	}
	if err := p.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	p.line(t)
	unclear, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	if len(unclear.Images) > 0 {
		t.Errorf("across exec, images are named: %v", unclear.Images)
	}
	after := take(t, s, 300*time.Millisecond)
	if by := routines(t, after, program); by["first"] > 0 || by["second"] == 0 {
		t.Errorf("after exec: %v, unknown %d", by, after.Unknown)
	}
}

// TestExit: what was counted up to the end of a process is had after it.
func TestExit(t *testing.T) {
	program := compile(t, "execs.c")
	p := start(t, program)
	s := sampler(t, p.Process, Options{})
	before, err := p.Times() // it has worked since before it was sampled
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool {
		used, err := p.Times()
		return err == nil && used.CPU-before.CPU > 300*time.Millisecond
	}, "the process has worked")
	p.cmd.Process.Kill()
	p.cmd.Wait()
	c, err := s.Take()
	if err != nil {
		t.Fatal(err)
	}
	by := routines(t, c, program)
	if of := time.Duration(by["first"]) * s.Period(); of < 200*time.Millisecond {
		t.Errorf("%v, %v of 300ms, unknown %d", by, of, c.Unknown)
	}
	if c, err = s.Take(); err != nil || c.Total() != 0 {
		t.Errorf("afterwards: %d samples, %v", c.Total(), err)
	}
}

// TestCloseLeavesNothing: no descriptor stays open.
func TestCloseLeavesNothing(t *testing.T) {
	p := start(t, compile(t, "execs.c"))
	open := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	once := func() {
		s, err := Start(p.Process, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error("a second time:", err)
		}
	}
	once() // what libraries keep
	before := open()
	for range 3 {
		once()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

// TestMain lets the test binary, started again, try to sample itself in a sandbox.
func TestMain(m *testing.M) {
	if os.Getenv("SANDBOX") == "" {
		os.Exit(m.Run())
	}
	if err := forbid(unix.SYS_PERF_EVENT_OPEN); err != nil {
		fmt.Println(err)
		return
	}
	p, err := target.Open(os.Getpid())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = Start(p, Options{})
	fmt.Println(errors.Is(err, ErrNotAllowed))
}

// forbid has the kernel refuse a system call to this process, with EPERM, as sandboxes do.
func forbid(call uint32) error {
	const number = 0 // offset of the number in struct seccomp_data
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// TestSandbox: where a sandbox forbids perf events, there is an error of its own.
func TestSandbox(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "SANDBOX=1")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "true\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNotAllowed: errors of privileges are told from others.
func TestNotAllowed(t *testing.T) {
	err := notAllowed(os.NewSyscallError("perf_event_open", unix.EACCES))
	if !errors.Is(err, ErrNotAllowed) || !errors.Is(err, unix.EACCES) {
		t.Error(err)
	}
	if err := notAllowed(unix.EMFILE); errors.Is(err, ErrNotAllowed) {
		t.Error(err)
	}
}

// BenchmarkCost prints what sampling takes of a process: how much longer a thread takes for the
// same work, in turns with clocks that run and that stand.
func BenchmarkCost(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self, err := target.Open(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	defer self.Close()
	s := sampler(b, self, Options{})
	const work = 20 << 20
	turn := func(how uint) time.Duration {
		for _, c := range s.clocks {
			if err := c.set(how); err != nil {
				b.Fatal(err)
			}
		}
		began := testenv.ThreadTime()
		spin(work)
		return testenv.ThreadTime() - began
	}
	var with, without []time.Duration
	for b.Loop() {
		without = append(without, turn(unix.PERF_EVENT_IOC_DISABLE))
		with = append(with, turn(unix.PERF_EVENT_IOC_ENABLE))
	}
	slices.Sort(with)
	slices.Sort(without)
	more := float64(with[len(with)/2])/float64(without[len(without)/2]) - 1
	b.ReportMetric(more*100, "%")
	b.ReportMetric(float64(s.Cost().Nanoseconds()), "ns/sample")
	b.ReportMetric(float64(s.Period().Microseconds()), "us/period")
}

// BenchmarkTake is what a user of a Sampler spends.
func BenchmarkTake(b *testing.B) {
	p := start(b, compile(b, "shares.c", "-lm"))
	s := sampler(b, p.Process, Options{})
	for b.Loop() {
		if _, err := s.Take(); err != nil {
			b.Fatal(err)
		}
	}
}

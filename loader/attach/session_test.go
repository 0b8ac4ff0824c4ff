package attach

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/internal/remedy"
	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/target"
)

// A subject is a program that stands before its first instruction, with a session that is loaded
// for it.
type subject struct {
	*target.Child
	exe     *os.File
	session *Session
}

func load(t *testing.T, argv ...string) *subject {
	t.Helper()
	return loadRing(t, 1<<20, argv...)
}

// loadRing loads with a ring buffer of so many bytes.
func loadRing(t *testing.T, ring int, argv ...string) *subject {
	t.Helper()
	return loadWith(t, Options{Ring: ring}, argv...)
}

func loadWith(t *testing.T, o Options, argv ...string) *subject {
	t.Helper()
	c, err := target.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{Child: c}
	t.Cleanup(func() {
		if s.session != nil {
			s.session.Close()
		}
		if c.Process.Alive() {
			c.Kill()
		}
		c.Process.Close()
	})
	if s.exe, err = c.Process.Executable(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.exe.Close() })
	p := planOf(t, argv[0])
	if o.Loads != nil {
		p.plan = o.Loads.Base
	}
	if s.session, err = Load(c.Process, p.image, p.plan, o); err != nil {
		t.Fatal(err)
	}
	return s
}

// A planned is a program and its plan, which nobody changes.
type planned struct {
	image *image.Image
	plan  *plan.Plan
}

var plans sync.Map // of planned, by path: with the race detector one takes seconds

func planOf(t testing.TB, path string) planned {
	t.Helper()
	if p, ok := plans.Load(path); ok {
		return p.(planned)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plans.Store(path, planned{im, p})
	return planned{im, p}
}

var loadPlans sync.Map // of *loads.Plan, the same

// loadsOf plans what is read at the hits of a program, too.
func loadsOf(t testing.TB, path string) *loads.Plan {
	t.Helper()
	if l, ok := loadPlans.Load(path); ok {
		return l.(*loads.Plan)
	}
	p, err := planner.Make(planOf(t, path).plan.Parts[0].Program,
		planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loads.Make(p, loads.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loadPlans.Store(path, l)
	return l
}

// poke writes a byte into the text of the program, at the first site.
func (s *subject) poke(t *testing.T, b byte) {
	t.Helper()
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.Process.PID), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	if _, err := mem.WriteAt([]byte{b},
		int64(s.session.images.executable().base+s.session.images.plan.Sites[0].Addr)); err != nil {
		t.Fatal(err)
	}
}

// openFiles counts our descriptors: a link or map that is left would be one.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// From attaching to flushing: hits come, the counts agree, and the text is the file's again while
// the program still runs.
func TestSession(t *testing.T) {
	before := openFiles(t)
	s := load(t, "/bin/cat", "/dev/null")
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	if err := checkText(s.Process, s.session.images.executable().image); !errors.Is(err,
		ErrBreakpoint) {
		t.Errorf("no probe stands: %v", err)
	}
	if err := s.session.Enable(true); err != nil {
		t.Fatal(err)
	}
	s.Release()
	<-s.Done()
	if err := s.session.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := s.session.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, hits := drain(t, s.session)
	if events[wire.Hit] == 0 || events[wire.End] != 1 || hits == 0 {
		t.Errorf("events by kind %v, %d hits", events, hits)
	}
	if m, err := s.session.Counters().Metrics(); err != nil || m != (Metrics{}) {
		t.Errorf("metrics %+v, %v", m, err)
	}
	if l, err := s.session.Counters().Losses(); len(l) > 0 || err != nil || s.session.Replaced() ||
		s.session.Fill() != 0 {
		t.Errorf("losses %v, %v, replaced %v, fill %v", l, err, s.session.Replaced(),
			s.session.Fill())
	}
	if err := s.session.Close(); err != nil {
		t.Fatal(err)
	}
	s.exe.Close()
	s.Child.Process.Close()
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestNoReportsWithoutGuard: reports that began when the guard had been killed were of what ran
// while the kernel took the probes out.
func TestNoReportsWithoutGuard(t *testing.T) {
	s := load(t, "/bin/cat", "/dev/null")
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(s.session.guard.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.session.guard.Gone()
	if err := s.session.Enable(true); !errors.Is(err, guard.ErrGone) {
		t.Errorf("the reports begin: %v", err)
	}
	var enabled uint32
	if err := s.session.objects.Enabled.Get(&enabled); err != nil || enabled != 0 {
		t.Errorf("enabled %d, %v", enabled, err)
	}
}

// TestProbesThatAreLeftIn: it was said that they were out when the guard had been killed while it
// put them in, and the kernel had left hundreds; or that the text was not the file's.
func TestProbesThatAreLeftIn(t *testing.T) {
	s := load(t, "/bin/cat", "/dev/null")
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	m := s.session.images.executable()
	if n, err := m.left(s.Process); err != nil || n != len(m.sites) {
		t.Errorf("%d breakpoints of %d probes, %v", n, len(m.sites), err)
	}
	if err := unix.Kill(s.session.guard.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := s.session.GuardLostError(); !errors.Is(err, guard.ErrGone) ||
		!strings.HasSuffix(err.Error(), "its probes are out") {
		t.Errorf("with none left: %v", err)
	}
	text, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.Process.PID), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	if _, err := text.WriteAt([]byte{breakpoint}, int64(m.base+m.sites[0].Addr)); err != nil {
		t.Fatal(err)
	}
	if err := s.session.GuardLostError(); !errors.Is(err, guard.ErrGone) ||
		!strings.Contains(err.Error(), "left 1 of its probes in") {
		t.Errorf("with one left: %v", err)
	}
	s.session.attached = false
	if err := s.session.Attach(s.exe); !errors.Is(err, guard.ErrGone) {
		t.Errorf("attach without a guard: %v", err)
	}
}

// TestSlotIsKeptWhileItIsDrained: a thread that ended while its rest was on its way had its number
// taken out of that.
func TestSlotIsKeptWhileItIsDrained(t *testing.T) {
	for _, sending := range []uint64{0, 1} {
		fifo := t.TempDir() + "/fifo"
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		s := load(t, "/bin/cat", fifo)
		if err := errors.Join(s.session.Attach(s.exe), s.session.Enable(true)); err != nil {
			t.Fatal(err)
		}
		s.Release()
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when cat opens the other end
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		slots := s.session.objects.Slots
		slot := uint32(s.Process.PID) % slots.MaxEntries()
		var thread bpf.TracerThread
		if err := slots.Lookup(slot, &thread); err != nil ||
			thread.Batch.Tid != uint32(s.Process.PID) {
			t.Fatalf("the slot has thread %d, not %d: %v", thread.Batch.Tid, s.Process.PID, err)
		}
		thread.Sending = sending
		if err := slots.Put(slot, thread); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(s.Process.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if err := slots.Lookup(slot, &thread); err != nil ||
			(thread.Batch.Tid == 0) != (sending == 0) {
			t.Errorf("sending %d: when thread %d has ended its slot has %d: %v", sending,
				s.Process.PID,
				thread.Batch.Tid, err)
		}
	}
}

// Where the text is not the file's, nothing is attached.
func TestChangedText(t *testing.T) {
	for _, c := range []struct {
		b    byte
		want string
	}{
		{breakpoint, "a breakpoint stands there already: detach the debugger or other tracer"},
		{0x90, "is not the file's"},
	} {
		s := load(t, "/bin/true")
		s.poke(t, c.b)
		before := openFiles(t)
		if err := s.session.Attach(s.exe); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "(true)") {
			t.Errorf("attach: %v, want %s", err, c.want)
		}
		if err := checkText(s.Process, s.session.images.executable().image); err == nil {
			t.Error("check of the text: no error")
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	}
}

func TestAttachToDead(t *testing.T) {
	s := load(t, "/bin/true")
	s.Kill()
	if err := s.session.Attach(s.exe); !errors.Is(err, target.ErrGone) {
		t.Errorf("attach to a dead process: %v", err)
	}
}

// A process that calls exec at any moment of attaching is distinguished from what it was, be it
// another program or the same one again.
func TestExecWhileAttaching(t *testing.T) {
	const shell = "/bin/sh"
	for _, c := range []struct {
		name, next string
		attach     func(s *subject, exec func()) error
	}{
		{"another program, before", "/bin/cat",
			func(s *subject, exec func()) error { exec(); return s.session.Attach(s.exe) }},
		{"the same program, before", shell,
			func(s *subject, exec func()) error { exec(); return s.session.Attach(s.exe) }},
		{"another program, meanwhile", "/bin/cat",
			func(s *subject,
				exec func()) error {
				return errors.Join(s.session.attach(s.exe), s.after(exec))
			}},
		{"the same program, meanwhile", shell,
			func(s *subject,
				exec func()) error {
				return errors.Join(s.session.attach(s.exe), s.after(exec))
			}},
		{"another program, afterwards", "/bin/cat", func(s *subject, exec func()) error {
			err := s.session.Attach(s.exe)
			exec()
			testenv.Eventually(t, s.session.Replaced, "all of exec is done")
			return errors.Join(err, s.session.Enable(false))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			// two: with one, the new program may open it before we have closed it, and be at its
			// end at once
			start, end := dir+"/start", dir+"/end"
			if err := errors.Join(unix.Mkfifo(start, 0o600), unix.Mkfifo(end, 0o600)); err != nil {
				t.Fatal(err)
			}
			s := load(t, shell, "-c", `read x <"$0"; exec "$1" "$2"`, start, c.next, end)
			s.Release()
			exec := func() { s.exec(t, start) }
			if err := c.attach(s, exec); !errors.Is(err, target.ErrReplaced) {
				t.Errorf("attach: %v, want %v", err, target.ErrReplaced)
			}
			if err := s.session.Close(); err != nil {
				t.Error(err)
			}
			s.write(t, end, "") // all that the new program reads
			<-s.Done()
			if status, err := s.ExitStatus(); status != 0 || err != nil {
				t.Errorf("the program ended with status %d, %v", status, err)
			}
		})
	}
}

// after is what Attach asks after all probes stand.
func (s *subject) after(exec func()) error {
	exec()
	return s.session.changed(s.exe)
}

// exec has the shell call exec, and waits until it has.
func (s *subject) exec(t *testing.T, fifo string) {
	t.Helper()
	before := s.Process.Command()
	s.write(t, fifo, "x\n")
	testenv.Eventually(t,
		func() bool { return !slices.Equal(s.Process.Command(), before) || !s.Process.Alive() },
		"it has called exec")
}

// write writes text to the program, which reads the pipe or is about to, and closes the pipe.
func (s *subject) write(t *testing.T, fifo, text string) {
	t.Helper()
	var f *os.File
	var err error
	testenv.Eventually(t, func() bool {
		f, err = os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0) // fails while nobody reads
		return !errors.Is(err, unix.ENXIO) || !s.Process.Alive()
	}, "the program reads")
	if err != nil {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.PID))
		t.Fatalf("%v: the program reads nothing: %q, alive %t\n%s", err, s.Process.Command(),
			s.Process.Alive(),
			status)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestProbeError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{unix.ESRCH, "it has exited"},
		{unix.EPERM, "operation not permitted: run wpptrace as root"},
		{fmt.Errorf("create link: %w", ebpf.ErrNotSupported),
			"Linux 6.1 or later, with uprobes, is needed: wpptrace check says what is missing"},
		{unix.EINVAL, "invalid argument"},
	} {
		if got := ProbeError(c.err).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// Signals that come faster than the verifier is done must not have it begin anew for ever.
func TestLoadUnderSignals(t *testing.T) {
	const often, limit = 5 * time.Millisecond, time.Minute
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	loaded, stopped := make(chan struct{}), make(chan bool)
	go func(pid, tid int) {
		late := time.After(limit)
		for {
			select {
			case <-loaded:
				stopped <- true
				return
			case <-late:
				stopped <- false
				return
			case <-time.After(often):
				unix.Tgkill(pid, tid, unix.SIGURG) // which means nothing to anybody
			}
		}
	}(unix.Getpid(), unix.Gettid())
	load(t, "/bin/true")
	close(loaded)
	if !<-stopped {
		t.Errorf("loading has not come to its end within %v, as long as signals came", limit)
	}
}

func TestLoadError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{unix.EPERM, "run wpptrace as root"},
		{unix.ENOSYS, "no bpf system call"},
		{ebpf.ErrNotSupported, "Linux 6.1 or later"},
		{unix.ENOMEM, "load the BPF program: map: cannot allocate memory"},
		{&ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"one", "two"}},
			"load the BPF program: permission denied: Linux 6.1 or later is needed"},
	} {
		if got := loadError(fmt.Errorf("map: %w", c.err)).Error(); !strings.Contains(got, c.want) ||
			strings.Contains(got, "\n") {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	var mended *remedy.Error
	if !errors.As(loadError(unix.ENOMEM), &mended) || mended.Kind != remedy.LessKernelMem {
		t.Errorf("for too little memory there is no remedy: %v", mended)
	}
}

// The verifier is what a short recording takes longest for: with what is known of the process it
// must not look at more than it does without.
func TestVerifierIsSoonDone(t *testing.T) {
	const most = 50_000 // instructions: some 50 ms
	s := loadWith(t, Options{Ring: DefaultRing, Hold: true, Shared: true}, "/bin/cat",
		"/dev/null").session
	for name, p := range map[string]*ebpf.Program{"hit": s.objects.Hit, "on_exit": s.objects.OnExit,
		"drain": s.objects.Drain} {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := info.VerifiedInstructions(); !ok || n > most {
			t.Errorf("of %s it looks at %d instructions (known: %v), more than %d", name, n, ok,
				most)
		}
	}
}

// checkText compares the code of the process with the file's, byte by byte, and fails where they
// differ.
func checkText(p *target.Process, im *image.Image) error {
	base, err := Base(p, im)
	if err != nil {
		return err
	}
	list, err := (&mapped{image: im, base: base}).altered(p, nil)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("at %x of process %d %s", list[0].Lo, p.PID, list[0].Why)
	}
	return err
}

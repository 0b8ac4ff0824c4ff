package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A Session is a plan for a process, attached to it or about to be. The order of calls is Load,
// Attach, Enable, Read again and again, Detach, Read until nothing comes, Flush, the same, Close;
// Close alone does at any time. Between Flush and Close it may be attached again: what the threads
// have done meanwhile is not known, and each is met anew. It is used by one goroutine at a time.
type Session struct {
	process *target.Process
	way     uprobe.Way
	plan    *plan.Plan
	images  []*mapped // part by part of the plan: first the executable
	calls   *bpf.CallTable
	objects bpf.TracerObjects
	others  []link.Link
	iter    *link.Iter
	reader  *ringbuf.Reader
	record  ringbuf.Record
	rests   *ringbuf.Reader // of what threads have left that it had no room for
	read    Position        // what Read has returned
	due     Position        // of the rests, which are read next when what came before in the ring buffer has been
	hold    bool            // the process is stopped where the ring buffer would overflow
	guard   *guard.Guard
	own     bool         // the guard is the session's own
	watch   *guard.Watch // nil: nobody is stopped

	attached  bool   // probes stand
	shared    bool   // libraries are observed too
	refreshed uint32 // times that the process had mapped code at the last Refresh
	heldFrom  time.Time
}

// A Position is a place in what has been reported, which comes in two buffers: bytes of each.
type Position struct{ ring, rests uint64 }

// Attach puts the plan's probes into the process, whose executable is exe, and checks each of them,
// and that the process is what it was at Load. Nothing is reported before Enable. Whatever fails,
// no probe stays. Cost: about 2 us a probe.
func (s *Session) Attach(exe *os.File) error {
	defer guard.Prompt()()
	again := s.reader != nil
	err := s.attach(exe)
	if cause := s.changed(exe); cause != nil {
		err = cause // of whatever failed
	} else if err != nil {
		err = cmp.Or(s.guarded(), err)
	}
	if err != nil {
		if again {
			s.unprobe()
		} else {
			s.unlink()
		}
		return fmt.Errorf("attach to process %d (%s): %w", s.process.PID, s.process.Name, err)
	}
	return nil
}

// changed fails when the process has ended, or runs another program by now, or the same one at
// another address.
func (s *Session) changed(exe *os.File) error {
	if !s.process.Alive() {
		return target.ErrGone
	}
	same, err := s.process.Runs(exe)
	if errors.Is(err, fs.ErrNotExist) {
		return s.process.WhyGone()
	}
	base, baseErr := Base(s.process, s.images[0].image)
	if !s.process.Alive() { // it may have ended meanwhile, and what is said of it mean anything
		return target.ErrGone
	}
	if err != nil {
		return err
	}
	if !same || baseErr != nil || base != s.images[0].base || s.Replaced() {
		return target.ErrReplaced
	}
	return nil
}

// attach makes the links: first those that tell of a thread's end, unless they stand since the last
// time, then the probes.
func (s *Session) attach(exe *os.File) error {
	on, err := s.process.ShadowStack()
	switch {
	case err != nil:
		return err
	case on:
		return errors.New("it has a shadow stack, with which kernels kill a probed process: start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off")
	}
	s.images[0].file = exe
	if err := s.images[0].untouched(s.process); err != nil {
		return err
	}
	if s.reader == nil {
		if err := s.listen(); err != nil {
			return err
		}
	}
	if err := s.objects.Holding.Set(uint32(1)); err != nil {
		return fmt.Errorf("have it held where it maps code: %w", err)
	}
	if err := s.findLibraries(); err != nil {
		return err
	}
	if err := s.eachLibrary((*mapped).untouched); err != nil {
		return err
	}
	if err := s.checkMemory(s.images...); err != nil {
		return err
	}
	s.attached = true
	if err := s.probe(); err != nil {
		return err
	}
	if err := s.images[0].standing(s.process); err != nil {
		return err
	}
	return s.eachLibrary((*mapped).standing)
}

// listen makes the links that tell of the life of threads, and opens the ring buffer.
func (s *Session) listen() (err error) {
	programs := []*ebpf.Program{s.objects.OnExec, s.objects.OnFork, s.objects.OnSignalDeliver}
	if s.guard == nil {
		if s.guard, err = guard.Start(s.process); err != nil {
			return err
		}
		s.own = true
	}
	if err := s.objects.Guard.Set(uint32(s.guard.PID())); err != nil {
		return fmt.Errorf("tell the kernel of its guard: %w", err)
	}
	if s.hold || s.shared {
		if errors.Is(s.process.Signal(0), unix.EPERM) { // before it is stopped, and stays so
			return errors.New("it could be stopped, but not let go on: no CAP_KILL: run wpptrace as root, or leave out --lib and --on-overflow stop")
		}
		if err := s.objects.Stops.Put(uint32(s.process.PID), bpf.TracerStop{}); err != nil {
			return fmt.Errorf("watch over it: %w", err)
		}
		if s.watch, err = s.guard.Watch(s.objects.Stops, s.objects.OnSignalGenerate, s.objects.OnExit); err != nil {
			return err
		}
	} else {
		programs = append(programs, s.objects.OnExit)
	}
	if s.shared {
		programs = append(programs, s.objects.OnSysExit)
	}
	for _, p := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return fmt.Errorf("follow the life of its threads: %w", err)
		}
		s.others = append(s.others, l)
	}
	if s.iter, err = link.AttachIter(link.IterOptions{Program: s.objects.Drain}); err != nil {
		return fmt.Errorf("prepare to drain its threads: %w", err)
	}
	if s.reader, err = ringbuf.NewReader(s.objects.Ring); err != nil {
		return fmt.Errorf("open the ring buffer: %w", err)
	}
	if s.rests, err = ringbuf.NewReader(s.objects.OverflowRing); err != nil {
		return fmt.Errorf("open the ring buffer of rests: %w", err)
	}
	return nil
}

// checkMemory fails when probes in those images could have the kernel kill a process that gets them
// for the lack of memory: each page that has any is copied, on account of the control groups that the
// process is in. As much again is to be left to it.
func (s *Session) checkMemory(images ...*mapped) error {
	var takes uint64
	for _, m := range images {
		if !m.absent {
			takes += m.probedMemory()
		}
	}
	probed := []int{s.process.PID}
	if s.way != uprobe.ProcessLink {
		others := target.RunningFrom(s.images[0].file)
		probed = append(probed, slices.DeleteFunc(others, func(pid int) bool { return pid == s.process.PID })...)
	}
	if left := target.MemoryLeft(probed...); takes > left/2 {
		return fmt.Errorf("put probes in: they take %.1f MiB of its memory, a page for each that has any, and control groups leave it %.1f: narrow what is observed with -F, or have them allow it more",
			float64(takes)/(1<<20), float64(left)/(1<<20))
	}
	return nil
}

// probe puts the probes of all images in.
func (s *Session) probe() error {
	for _, m := range s.images {
		if err := m.probe(s.guard, s.way, s.process, s.objects.Hit); err != nil {
			return err
		}
	}
	return nil
}

// probeError says what a user can do about probes that the kernel refuses.
func probeError(err error) error {
	switch {
	case errors.Is(err, unix.ESRCH):
		return target.ErrGone
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: run wpptrace as root", err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%w: Linux 6.1 or later, with uprobes, is needed: wpptrace check tells what is missing", err)
	}
	return err
}

// Enable starts the reports. fromStart says that the process has not run yet, so that no thread is
// met in its middle. It fails if since Attach the process has called exec, or the guard has ended.
func (s *Session) Enable(fromStart bool) error {
	if !fromStart {
		now, err := bootTime()
		if err != nil {
			return err
		}
		if err := s.objects.EnabledAt.Set(now); err != nil {
			return fmt.Errorf("start the reports: %w", err)
		}
	}
	if err := s.objects.Enabled.Set(uint32(1)); err != nil {
		return fmt.Errorf("start the reports: %w", err)
	}
	if s.Replaced() {
		return fmt.Errorf("trace process %d (%s): %w", s.process.PID, s.process.Name, target.ErrReplaced)
	}
	if err := s.guarded(); err != nil {
		return fmt.Errorf("trace process %d (%s): %w", s.process.PID, s.process.Name, err)
	}
	return nil
}

// guarded fails if the guard has come to its end, and ends the reports: the kernel takes its probes
// out, one after the other.
func (s *Session) guarded() error {
	var orphaned uint32
	if err := s.objects.Orphaned.Get(&orphaned); err != nil {
		return fmt.Errorf("look after the guard: %w", err)
	}
	if orphaned == 0 {
		return nil
	}
	if err := s.objects.Enabled.Set(uint32(0)); err != nil {
		return fmt.Errorf("end the reports: %w", err)
	}
	return s.Bereft()
}

// bootTime is the kernel's clock, ns.
func bootTime() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

// Read returns the next batch. Its memory is good until the next call. When none comes until the
// deadline it returns os.ErrDeadlineExceeded, and has drained what there was. A process that was
// stopped because there was too much goes on when all has been read, one that was because it has
// mapped code after Refresh.
func (s *Session) Read(deadline time.Time) (wire.Batch, error) {
	if s.read.rests >= s.due.rests {
		s.due = s.Reported()
	}
	if s.read.rests < s.due.rests && s.read.ring >= s.due.ring {
		return s.readFrom(s.rests, &s.read.rests, time.Now())
	}
	if s.reader.AvailableBytes() == 0 {
		if err := s.letGo(); err != nil {
			return wire.Batch{}, err
		}
	}
	return s.readFrom(s.reader, &s.read.ring, deadline)
}

// Reported returns the end of what has been reported by now.
func (s *Session) Reported() Position {
	rests := s.read.rests + uint64(s.rests.AvailableBytes()) // asked first
	return Position{ring: s.read.ring + uint64(s.reader.AvailableBytes()), rests: rests}
}

// HasRead reports whether Read has returned all up to there.
func (s *Session) HasRead(p Position) bool { return s.read.ring >= p.ring && s.read.rests >= p.rests }

// readFrom returns the next batch of a buffer, and counts its bytes.
func (s *Session) readFrom(r *ringbuf.Reader, read *uint64, deadline time.Time) (wire.Batch, error) {
	const header = 8 // of a record
	r.SetDeadline(deadline)
	if err := r.ReadInto(&s.record); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return wire.Batch{}, os.ErrDeadlineExceeded
		}
		return wire.Batch{}, fmt.Errorf("read the ring buffer: %w", err)
	}
	*read += header + uint64(len(s.record.RawSample))
	return wire.ParseBatch(s.record.RawSample)
}

// letGo lets the process go on if nothing keeps it stopped but what has been dealt with. Where
// libraries are observed that can be told only when all threads have stopped: before, one may be
// about to map code.
func (s *Session) letGo() error {
	if s.watch == nil {
		return nil
	}
	if s.shared && s.attached {
		held, err := s.watch.Holds(s.process.PID)
		if err != nil || !held {
			s.heldFrom = time.Time{}
			return err
		}
		const patience = 200 * time.Millisecond // with a thread that waits in the kernel, for a process that may wait for this one
		if s.heldFrom.IsZero() {
			s.heldFrom = time.Now()
		}
		if !s.process.Stopped() && time.Since(s.heldFrom) < patience || s.Mapped() {
			return nil
		}
		s.heldFrom = time.Time{}
	}
	return s.watch.LetGo(s.process.PID)
}

// Way is how the session's probes go in.
func (s *Session) Way() uprobe.Way { return s.way }

// Fill is the share of the ring buffer that waits to be read, 0 to 1.
func (s *Session) Fill() float64 {
	return float64(s.reader.AvailableBytes()) / float64(s.reader.BufferSize())
}

// Confine leaves the process that puts the session's probes in, and takes them out, with those
// capabilities alone; it takes none to take them out.
func (s *Session) Confine(keep ...cap.Value) error { return s.guard.Confine(keep...) }

// Detach takes the probes out. Cost: that of uprobe.Way.Removal. The process runs on as if nothing
// had been.
func (s *Session) Detach() error {
	if !s.attached {
		return nil
	}
	defer guard.Prompt()()
	// Probes go one after the other: what the rest of them would say has no meaning.
	if err := s.objects.Enabled.Set(uint32(0)); err != nil {
		return fmt.Errorf("end the reports: %w", err)
	}
	s.attached = false
	err := s.objects.Holding.Set(uint32(0))
	if s.Unguarded() {
		return err // they have gone with it
	}
	if s.watch != nil && !s.shared { // it may be stopped, and has nothing more to say: it need not wait until slow kernels have taken out all
		err = errors.Join(err, s.watch.LetGo(s.process.PID))
	}
	for _, m := range s.images {
		err = errors.Join(err, m.unprobe())
	}
	if err != nil {
		return fmt.Errorf("take the probes out of process %d: %w", s.process.PID, err)
	}
	return nil
}

// Flush has the threads that still live hand over what they have not sent. Call it after Detach,
// and after the ring buffer has been emptied, so that there is room. Those that come to their end
// meanwhile are waited for, until ctx is done.
func (s *Session) Flush(ctx context.Context) error {
	for {
		unsent, err := s.flush()
		if err != nil {
			return fmt.Errorf("drain the threads of process %d: %w", s.process.PID, err)
		}
		if unsent == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drain the threads of process %d: %d are at it still: %w", s.process.PID, unsent, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// flush returns how many threads were at that themselves, because they come to their end: it may
// not be in the ring buffer yet.
func (s *Session) flush() (unsent uint32, err error) {
	if err := s.objects.Unsent.Set(uint32(0)); err != nil {
		return 0, err
	}
	r, err := s.iter.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, err
	}
	err = s.objects.Unsent.Get(&unsent)
	return unsent, err
}

// Close detaches, if need be, and frees everything.
func (s *Session) Close() error {
	err := errors.Join(s.Detach(), s.unlink())
	s.objects.Close()
	return err
}

// unprobe undoes probe.
func (s *Session) unprobe() {
	s.attached = false
	_ = s.objects.Holding.Set(uint32(0))
	for _, m := range s.images {
		_ = m.unprobe()
	}
}

// unlink undoes attach. What may stop the process goes before what lets it go on.
func (s *Session) unlink() (err error) {
	s.unprobe()
	for _, l := range s.others {
		l.Close()
	}
	if s.watch != nil {
		err = s.watch.Close()
		s.watch = nil
	}
	if s.own {
		err = errors.Join(err, s.guard.Close())
		s.guard, s.own = nil, false
	}
	if s.iter != nil {
		s.iter.Close()
	}
	if s.reader != nil {
		s.reader.Close()
	}
	if s.rests != nil {
		s.rests.Close()
	}
	s.others, s.iter, s.reader, s.rests, s.read, s.due = nil, nil, nil, nil, Position{}, Position{}
	return err
}

// Unguarded reports whether the guard of the session has been killed: nobody can put probes in any
// more. Bereft tells what has become of those that stood.
func (s *Session) Unguarded() bool {
	select {
	case <-s.guard.Gone():
		return true
	default:
		return false
	}
}

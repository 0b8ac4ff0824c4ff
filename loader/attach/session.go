package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A Session is a plan for a process, attached to it or about to be. The order of calls is Load,
// Attach, Enable, Read again and again, Detach, Read until nothing comes, Flush, the same, Close;
// Close alone does at any time. Between Flush and Close it may be attached again: what the threads
// have done meanwhile is not known, and each is met anew. It is used by one goroutine at a time.
type Session struct {
	process *target.Process
	objects bpf.TracerObjects
	images  images
	reports reports
	threads threads
	guard   *guard.Guard
	own     bool   // the guard is the session's own
	hold    bool   // the process is stopped where the ring buffer would overflow
	stops   *stops // nil: nobody is stopped

	attached bool // probes stand
}

// Attach puts the plan's probes into the process, whose executable is exe, and checks each of them,
// and that the process is what it was at Load. Nothing is reported before Enable. Whatever fails,
// no probe stays. Cost: about 2 us a probe.
func (s *Session) Attach(exe *os.File) error {
	defer guard.RaisePriority()()
	again := s.reports.isOpen()
	if err := s.whyFailed(exe, s.attach(exe)); err != nil {
		if again {
			s.unprobe()
		} else {
			s.unlink()
		}
		return fmt.Errorf("attach to process %d (%s): %w", s.process.PID, s.process.Name, err)
	}
	return nil
}

// whyFailed is why probes could not be put in, nil if they could and still serve. err is what the
// attempt failed with.
func (s *Session) whyFailed(exe *os.File, err error) error {
	if cause := s.changed(exe); cause != nil {
		return cause // of whatever failed
	}
	if err == nil {
		return nil
	}
	return cmp.Or(s.guarded(), err)
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
	executable := s.images.executable()
	base, baseErr := Base(s.process, executable.image)
	if !s.process.Alive() { // it may have ended meanwhile: then what was read of it has no meaning
		return target.ErrGone
	}
	if err != nil {
		return err
	}
	if !same || baseErr != nil || base != executable.base || s.Replaced() {
		return target.ErrReplaced
	}
	return nil
}

// attach puts all probes in that are not in the process.
func (s *Session) attach(exe *os.File) error {
	if err := s.ready(exe); err != nil {
		return err
	}
	if err := s.objects.Holding.Set(uint32(1)); err != nil {
		return fmt.Errorf("have it held where it maps code: %w", err)
	}
	if err := s.images.locate(); err != nil {
		return err
	}
	list := s.images.out()
	if err := s.images.check(list, (*mapped).untouched); err != nil {
		return err
	}
	s.attached = true
	if err := s.images.put(list, s.guard); err != nil {
		return err
	}
	return s.images.check(list, (*mapped).standing)
}

// Ready makes all ready for probes, and puts none in: what keeps them out is found now. Attach does
// so as well. exe is as of Attach.
func (s *Session) Ready(exe *os.File) error {
	if err := s.whyFailed(exe, s.ready(exe)); err != nil {
		return fmt.Errorf("attach to process %d (%s): %w", s.process.PID, s.process.Name, err)
	}
	return nil
}

// CheckShadowStack fails where probes would end a process.
func CheckShadowStack(p *target.Process) error {
	on, err := p.ShadowStack()
	if err == nil && on {
		err = errors.New("it has a shadow stack, with which kernels kill a probed process: start " +
			"it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off")
	}
	return err
}

// ready makes all ready for probes: the links that follow the threads, unless they stand since the
// last time.
func (s *Session) ready(exe *os.File) error {
	if err := CheckShadowStack(s.process); err != nil {
		return err
	}
	s.images.executable().file = exe
	if !s.reports.isOpen() {
		// before a guard is started
		if err := s.images.check(s.images.out(), (*mapped).untouched); err != nil {
			return err
		}
		if err := s.listen(); err != nil {
			return err
		}
	}
	if s.GuardDead() {
		return guard.ErrGone
	}
	if err := s.images.locate(); err != nil {
		return err
	}
	return s.images.checkMemory(s.images.list...)
}

// listen makes the links that follow the life of threads, and opens the ring buffers.
func (s *Session) listen() (err error) {
	programs := []*ebpf.Program{s.objects.OnExec, s.objects.OnFork, s.objects.OnSignalDeliver}
	if s.guard == nil {
		if s.guard, err = guard.Start(s.process); err != nil {
			return err
		}
		s.own = true
	}
	if err := s.objects.Guard.Set(uint32(s.guard.PID())); err != nil {
		return fmt.Errorf("have the kernel know its guard: %w", err)
	}
	if s.hold || s.images.libraries {
		if s.stops, err = watchStops(s.process, s.guard, &s.objects); err != nil {
			return err
		}
	} else {
		programs = append(programs, s.objects.OnExit)
	}
	if s.images.libraries {
		programs = append(programs, s.objects.OnSysExit)
	}
	if err := s.threads.follow(programs...); err != nil {
		return err
	}
	return s.reports.open(s.objects.Ring, s.objects.OverflowRing)
}

// ProbeError says what a user can do about probes that the kernel refuses.
func ProbeError(err error) error {
	switch {
	case errors.Is(err, unix.ESRCH):
		return target.ErrGone
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: run wpptrace as root", err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("%w: Linux 6.1 or later, with uprobes, is needed: wpptrace check says "+
			"what is missing", err)
	}
	return err
}

// Enable starts the reports. fromStart says that the process has not run yet, so that no thread is
// met in its middle. It fails if since Attach the process has called exec, or the guard has ended.
func (s *Session) Enable(fromStart bool) error {
	if !fromStart {
		now, err := clock(unix.CLOCK_BOOTTIME)
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
		return fmt.Errorf("trace process %d (%s): %w", s.process.PID, s.process.Name,
			target.ErrReplaced)
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
	return s.GuardLostError()
}

// clock is one of the kernel's clocks, ns.
func clock(which int32) (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(which, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

// Read returns the next batch. Its memory is good until the next call. When none comes until the
// deadline it returns os.ErrDeadlineExceeded, and has drained what there was. A process that was
// stopped because there was too much goes on when all has been read, one that was because it has
// mapped code after Refresh.
func (s *Session) Read(deadline time.Time) (wire.Batch, error) {
	return s.reports.next(deadline, s.resume)
}

// Reported returns the end of what has been reported by now.
func (s *Session) Reported() Position { return s.reports.end() }

// HasRead reports whether Read has returned all up to there.
func (s *Session) HasRead(p Position) bool { return s.reports.has(p) }

// resume lets the process go on if nothing keeps it stopped but what has been dealt with.
func (s *Session) resume() error {
	switch {
	case s.stops == nil:
		return nil
	case s.images.libraries && s.attached:
		return s.stops.resumeWhenAllStand(s.images.hasMapped)
	}
	return s.stops.resume()
}

// Mechanism is how the session's probes go in.
func (s *Session) Mechanism() uprobe.Mechanism { return s.images.mechanism }

// Fill is the share of the ring buffer that waits to be read, 0 to 1.
func (s *Session) Fill() float64 { return s.reports.fill() }

// Confine leaves the process that puts the session's probes in, and takes them out, with those
// capabilities alone; it takes none to take them out.
func (s *Session) Confine(keep ...cap.Value) error { return s.guard.Confine(keep...) }

// Detach takes the probes out, cold ones last and by and by. Cost: that of
// uprobe.Mechanism.Removal, and some ms for each group of cold ones. The process runs on meanwhile,
// and afterwards as if nothing had been.
func (s *Session) Detach() error {
	return errors.Join(s.takeOut(s.images.hot()), s.images.takeColdOut(s.process.PID, s.guard),
		s.images.awaitRemovals(s.guard))
}

// Pause is Detach, but that cold probes stay, and that a hit that has begun may go on: Flush waits
// for that.
func (s *Session) Pause() error { return s.takeOut(s.images.hot()) }

func (s *Session) takeOut(list []place) error {
	if !s.attached && len(list) == 0 && len(s.images.cold()) == 0 {
		return nil
	}
	defer guard.RaisePriority()()
	s.images.primeOut(list, s.guard) // while they report
	// Probes go one after the other: what the rest of them would report has no meaning.
	if err := s.objects.Enabled.Set(uint32(0)); err != nil {
		return fmt.Errorf("end the reports: %w", err)
	}
	s.attached = false
	err := s.objects.Holding.Set(uint32(0))
	if s.GuardDead() {
		for _, at := range list {
			at.group.placed = nil
		}
		return err // they have gone with it
	}
	if s.stops != nil && !s.images.libraries {
		// It may be stopped, and has nothing more to report: it need not wait until slow kernels
		// have taken out all.
		err = errors.Join(err, s.stops.resume())
	}
	if err = errors.Join(err, s.images.takeOut(list, s.guard)); err != nil {
		return fmt.Errorf("take the probes out of process %d: %w", s.process.PID, err)
	}
	return nil
}

// Flush has the threads that still live hand over what they have not sent. Call it after Detach, or
// Pause, and after the ring buffer has been emptied, so that there is room. Those that come to
// their end meanwhile are waited for, until ctx is done.
func (s *Session) Flush(ctx context.Context) error {
	if err := s.images.awaitRemovals(s.guard); err != nil {
		return fmt.Errorf("take the probes out of process %d: %w", s.process.PID, err)
	}
	if err := s.threads.flush(ctx); err != nil {
		return fmt.Errorf("drain the threads of process %d: %w", s.process.PID, err)
	}
	return nil
}

// Close detaches, if need be, and frees everything.
func (s *Session) Close() error {
	err := errors.Join(s.Detach(), s.unlink())
	s.objects.Close()
	return err
}

// unprobe undoes what attach has done.
func (s *Session) unprobe() {
	s.attached = false
	_ = s.objects.Holding.Set(uint32(0))
	_ = s.images.remove(s.images.in(), s.guard)
}

// unlink undoes attach. What may stop the process goes before what lets it go on.
func (s *Session) unlink() (err error) {
	s.unprobe()
	s.threads.close()
	if s.stops != nil {
		err = s.stops.close()
		s.stops = nil
	}
	if s.own {
		err = errors.Join(err, s.guard.Close())
		s.guard, s.own = nil, false
	}
	s.reports.close()
	return err
}

// GuardDead reports whether the guard of the session has been killed: nobody can put probes in any
// more. GuardLostError says what has become of those that stood.
func (s *Session) GuardDead() bool { return s.guard.IsGone() }

// Exit returns how the process has come to its end; false: it has not, or not since the session was
// loaded.
func (s *Session) Exit() (status unix.WaitStatus, ended bool) {
	var v uint32
	if s.objects.Ended.Get(&v) != nil || v == 0 {
		return 0, false
	}
	return unix.WaitStatus(v &^ uint32(bpf.TracerEndingFlagENDED)), true
}

// Replaced reports whether the process has called exec: its program is another one now, and nothing
// is reported any more.
func (s *Session) Replaced() bool {
	var v uint32
	return s.objects.Replaced.Get(&v) == nil && v != 0
}

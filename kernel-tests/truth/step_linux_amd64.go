package truth

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A stepper runs one program to its end. All of it happens on the OS thread that started the
// program.
type stepper struct {
	pid     int
	limit   int
	most    int
	stepAll bool
	stack   bool // stack pointers are noted
	trace   *Trace
	img     *image
	atlas   *atlas
	libs    []string
	curtain *curtain
	valuer  *valuer // nil: no values

	live    map[int]*tracee
	unborn  map[int]bool // children that stopped before the event that says what they are
	orphans map[int]bool // forked children still to be let go; true: their text is covered
}

// A tracee is a thread that is being stepped.
type tracee struct {
	*Thread
	pc       uint64 // the instruction that runs when the thread is resumed
	sp       uint64 // the stack pointer there, if stack pointers are noted
	values   values
	outside  int    // steps in a row outside of the image
	free     bool   // running behind the curtain, not stepped
	newborn  bool   // the SIGSTOP that every new thread begins with has not come
	injected int    // the signal that the thread was last resumed with
	restarts uint64 // the system call instruction that the kernel may run again, or 0
	handlers []handler
}

// run waits for stops until nothing that belongs to the program is left.
func (s *stepper) run() error {
	err := s.begin()
	for err == nil {
		var tid int
		var status unix.WaitStatus
		tid, status, err = nextStop(s.pid)
		if err == unix.ECHILD {
			return nil
		}
		if err != nil {
			err = fmt.Errorf("wait for program: %w", err)
			break
		}
		err = s.handle(tid, status)
		if err == nil && s.limit > 0 && s.trace.Steps >= s.limit {
			err = ErrLimit
		}
		if s.trace.Cut {
			break
		}
	}
	s.kill()
	return err
}

// begin takes over the program at its exec.
func (s *stepper) begin() error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(s.pid, &status, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait for exec: %w", err)
	}
	if !status.Stopped() {
		return fmt.Errorf("program ended before its first instruction: %v", status)
	}
	const options = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD
	if err := ptrace(unix.PTRACE_SETOPTIONS, s.pid, 0, options); err != nil {
		return fmt.Errorf("set ptrace options: %w", err)
	}
	if err := s.loaded(); err != nil {
		return err
	}
	s.live, s.unborn, s.orphans = map[int]*tracee{}, map[int]bool{}, map[int]bool{}
	t := s.add(s.pid)
	t.outside = s.curtain.patience
	return s.resumeAt(t, 0)
}

// loaded looks at the image that the process has just been given by an exec.
func (s *stepper) loaded() (err error) {
	if s.img, err = openImage(fmt.Sprintf("/proc/%d/exe", s.pid)); err != nil {
		return err
	}
	if err = s.img.locate(s.pid); err != nil {
		return err
	}
	s.atlas = &atlas{pid: s.pid, exe: s.img, libraries: s.libs}
	if s.valuer != nil {
		s.img.restrict(s.valuer.within)
		s.trace.Bias, s.atlas.within = s.img.bias, s.valuer.within
		if err := s.valuer.open(s.pid, s.atlas); err != nil {
			return err
		}
	}
	s.curtain, err = newCurtain(s.atlas, s.pid)
	return err
}

func (s *stepper) add(tid int) *tracee {
	t := &tracee{Thread: &Thread{TID: tid}}
	s.live[tid] = t
	s.trace.Threads = append(s.trace.Threads, t.Thread)
	return t
}

// kill ends what is left of the program and reaps it.
func (s *stepper) kill() {
	_ = unix.Kill(s.pid, unix.SIGKILL)
	for {
		if _, _, err := nextStop(s.pid); err != nil {
			return
		}
	}
}

func (s *stepper) close() {
	if s.curtain != nil {
		s.curtain.mem.Close()
	}
}

// handle deals with one report of wait and resumes the thread it is about.
func (s *stepper) handle(tid int, status unix.WaitStatus) error {
	t := s.live[tid]
	switch {
	case !status.Stopped():
		s.ended(tid, status)
		return nil
	case t == nil:
		return s.unknown(tid)
	}
	err := s.stopped(t, status)
	if errors.Is(err, unix.ESRCH) {
		return nil // another thread ended the program; this one's end will be reported
	}
	return err
}

func (s *stepper) stopped(t *tracee, status unix.WaitStatus) error {
	if event := int(status >> 16); event != 0 {
		return s.event(t, event)
	}
	sig := status.StopSignal()
	if sig == unix.SIGTRAP|sysGood {
		return s.called(t)
	}
	if sig == unix.SIGTRAP {
		return s.trapped(t)
	}
	if sig == unix.SIGSTOP && t.newborn {
		t.newborn = false
		return s.resumeAt(t, 0)
	}
	return s.signalled(t, int(sig))
}

// ended notes a thread's death. A system call that a thread died in counts as executed: it was
// entered.
func (s *stepper) ended(tid int, status unix.WaitStatus) {
	if t := s.live[tid]; t != nil {
		if img, err := s.atlas.at(t.pc); err == nil && img != nil && status.Exited() && !t.free &&
			img.opcodeAt(t.pc) == syscallOp {
			s.ran(t, img.place(t.pc))
		}
		delete(s.live, tid)
	}
	if tid != s.pid {
		return
	}
	if status.Exited() {
		s.trace.Exit = status.ExitStatus()
	} else {
		s.trace.Signal = int(status.Signal())
	}
}

// unknown is a stop of a child whose birth was not announced yet, or of a forked child that is to
// be let go.
func (s *stepper) unknown(tid int) error {
	covered, orphan := s.orphans[tid]
	if !orphan {
		s.unborn[tid] = true
		return nil
	}
	delete(s.orphans, tid)
	return s.release(tid, covered)
}

// release lets a forked child run on its own; the kernel has cleared its TF.
func (s *stepper) release(tid int, covered bool) error {
	if covered {
		if err := s.curtain.uncoverCopy(tid); err != nil {
			return err
		}
	}
	if err := ptrace(unix.PTRACE_DETACH, tid, 0, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("let forked child go: %w", err)
	}
	return nil
}

// event deals with clone, fork, vfork and exec. The thread is inside its system call.
func (s *stepper) event(t *tracee, event int) error {
	if event == unix.PTRACE_EVENT_EXEC {
		return s.execed(t)
	}
	child, err := eventMessage(t.TID)
	if err != nil {
		return err
	}
	covered := len(s.curtain.drawn) > 0
	if err := s.curtain.open(); err != nil {
		return err
	}
	if err := s.born(int(child), event == unix.PTRACE_EVENT_CLONE,
		covered && event == unix.PTRACE_EVENT_FORK); err != nil {
		return err
	}
	if event == unix.PTRACE_EVENT_VFORK {
		// the child runs in its memory until it goes on itself: no curtain may be drawn before
		t.outside = 0
	}
	if t.free {
		t.free = false
		return s.resumeAt(t, 0)
	}
	return s.resume(t, 0)
}

func (s *stepper) born(child int, thread, covered bool) error {
	early := s.unborn[child]
	delete(s.unborn, child)
	switch {
	case thread:
		t := s.add(child)
		t.newborn = !early
		if early {
			return s.resumeAt(t, 0)
		}
		return nil
	case early:
		return s.release(child, covered)
	default:
		s.orphans[child] = covered
		return nil
	}
}

// execed goes on with the same file at its new addresses; another program ends the recording and
// runs on its own. The thread that made the call has the process's id from here on.
func (s *stepper) execed(t *tracee) error {
	clear(s.live)
	before := s.img.file
	s.close()
	if err := s.loaded(); err != nil {
		return err
	}
	if s.img.file != before {
		if err := ptrace(unix.PTRACE_DETACH, s.pid, 0, 0); err != nil {
			return fmt.Errorf("let program go after exec: %w", err)
		}
		return nil
	}
	s.live[s.pid] = t
	t.handlers, t.restarts, t.free, t.outside = nil, 0, false, s.curtain.patience
	return s.resumeAt(t, 0)
}

// trapped is the end of a step, the entry of a handler, or the arrival at the curtain.
func (s *stepper) trapped(t *tracee) error {
	if t.free {
		return s.arrived(t)
	}
	if t.injected != 0 {
		sig := t.injected
		t.injected = 0
		code, err := signalCode(t.TID)
		if err != nil {
			return err
		}
		if code != trapTrace {
			return s.enterHandler(t, sig)
		}
	}
	pc, err := s.look(t)
	if err != nil {
		return err
	}
	s.trace.Steps++
	img, err := s.atlas.at(t.pc)
	if err != nil {
		return err
	}
	if img != nil {
		t.outside = 0
		deliver, err := s.record(img, t, pc)
		if err != nil {
			return err
		}
		if deliver {
			if err := s.moveTo(t, pc); err != nil {
				return err
			}
			return s.resume(t, int(unix.SIGTRAP))
		}
	} else {
		t.outside++
		t.restarts = 0
	}
	if err := s.moveTo(t, pc); err != nil {
		return err
	}
	if len(t.handlers) > 0 {
		if err := s.followHandlers(t); err != nil {
			return err
		}
	}
	return s.resume(t, 0)
}

// record appends the instruction at t.pc, which has run and led to next. It says whether the trap
// is the instruction's own.
func (s *stepper) record(img *image, t *tracee, next uint64) (deliver bool, err error) {
	switch img.opcodeAt(t.pc) {
	case repString:
		if next == t.pc {
			s.valuer.iterated(t)
			return false, nil // an iteration, not the end
		}
	case int3:
		deliver = true
	case syscallOp:
		return false, s.recordSyscall(img, t, next)
	}
	if t.restarts != 0 && s.restarted(t, next) {
		return false, nil
	}
	s.valuer.executed(t)
	s.ran(t, img.place(t.pc))
	for pc := t.pc; img.opcodeAt(pc) == cpuid && next != pc+cpuidLength; {
		pc += cpuidLength
		s.ran(t, img.place(pc))
	}
	return deliver, nil
}

// arrived opens the curtain before the image's first instruction that was reached.
func (s *stepper) arrived(t *tracee) error {
	pc, err := s.look(t)
	if err != nil {
		return err
	}
	if img, err := s.atlas.at(pc - 1); err != nil || img == nil {
		if err != nil {
			return err
		}
		return s.signalled(t, int(unix.SIGTRAP)) // a library's own trap
	}
	if err := s.curtain.open(); err != nil {
		return err
	}
	t.free, t.outside = false, 0
	if err := s.moveTo(t, pc-1); err != nil {
		return err
	}
	if err := pokeUser(t.TID, userRIP, t.pc); err != nil {
		return fmt.Errorf("move back to covered instruction: %w", err)
	}
	return s.resume(t, 0)
}

// resumeAt resumes a thread whose program counter is not known.
func (s *stepper) resumeAt(t *tracee, sig int) error {
	pc, err := s.look(t)
	if err != nil {
		return err
	}
	if err := s.moveTo(t, pc); err != nil {
		return err
	}
	return s.resume(t, sig)
}

// look reads the program counter of a thread that has stopped and, for values, all registers.
func (s *stepper) look(t *tracee) (pc uint64, err error) {
	if s.valuer != nil {
		return t.values.look(t.TID)
	}
	if pc, err = peekUser(t.TID, userRIP); err != nil {
		return 0, fmt.Errorf("read program counter: %w", err)
	}
	return pc, nil
}

// moveTo notes where a thread that has stopped goes on.
func (s *stepper) moveTo(t *tracee, pc uint64) (err error) {
	t.pc = pc
	if !s.stack {
		return nil
	}
	if t.sp, err = peekUser(t.TID, userRSP); err != nil {
		return fmt.Errorf("read stack pointer: %w", err)
	}
	return nil
}

// ran notes that the instruction has run at which a thread stood: place is what a trace calls its
// address.
func (s *stepper) ran(t *tracee, place uint64) {
	t.Insns = append(t.Insns, place)
	s.trace.Cut = s.trace.Cut || s.most > 0 && len(t.Insns) >= s.most
	if s.stack {
		t.Stack = append(t.Stack, t.sp)
	}
}

// resume runs the thread's next instruction, or lets it run until it is back in the image.
func (s *stepper) resume(t *tracee, sig int) error {
	request := unix.PTRACE_SINGLESTEP
	if sig == 0 && s.mayRunFree(t) {
		if err := s.curtain.draw(); err != nil {
			return err
		}
		t.free = true
		if request = unix.PTRACE_CONT; len(s.libs) > 0 {
			request = unix.PTRACE_SYSCALL
		}
	}
	if !t.free {
		if err := s.valuer.before(t); err != nil {
			return err
		}
	}
	t.injected = sig
	if err := ptrace(request, t.TID, 0, uintptr(sig)); err != nil {
		return fmt.Errorf("resume thread: %w", err)
	}
	return nil
}

// mayRunFree says whether the thread is so deep in a library that covering the image pays. Other
// threads, and the end of a handler, must be seen step by step.
func (s *stepper) mayRunFree(t *tracee) bool {
	return t.outside >= s.curtain.patience && !s.stepAll && len(s.live) == 1 &&
		len(t.handlers) == 0 &&
		s.curtain.possible() && s.isOutside(t.pc)
}

// isOutside says whether an address is in none of the images.
func (s *stepper) isOutside(pc uint64) bool {
	img, err := s.atlas.at(pc)
	return err == nil && img == nil
}

// sysGood distinguishes a stop at a system call from a trap.
const sysGood = 0x80

// called goes on at a system call of a thread that runs free, when it is made and when it has been.
// It may have mapped a library, which is covered then before anything of it runs, or be about to
// unmap one.
func (s *stepper) called(t *tracee) error {
	nr, err := peekUser(t.TID, userOrigRAX)
	if err != nil {
		return fmt.Errorf("read system call: %w", err)
	}
	if nr == unix.SYS_MMAP || nr == unix.SYS_MUNMAP {
		if err := s.curtain.open(); err != nil {
			return err
		}
		if err := s.curtain.draw(); err != nil {
			return err
		}
	}
	if err := ptrace(unix.PTRACE_SYSCALL, t.TID, 0, 0); err != nil {
		return fmt.Errorf("resume thread: %w", err)
	}
	return nil
}

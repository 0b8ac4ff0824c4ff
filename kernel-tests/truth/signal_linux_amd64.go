package truth

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trapTrace is si_code of a completed single step; the stop at a handler's entry has another.
const trapTrace = 2

// A handler is a signal handler's activation that is running.
type handler struct {
	stackLo, stackHi uint64 // while it runs, rsp stays in between, both ends included
	returning        bool   // its rt_sigreturn runs next
	restarts         uint64 // the interrupted system call, as in tracee
}

// eventMessage is the new thread's or process's id after a clone or fork event.
func eventMessage(tid int) (v uint64, err error) {
	if err = ptrace(unix.PTRACE_GETEVENTMSG, tid, 0, uintptr(unsafe.Pointer(&v))); err != nil {
		return 0, fmt.Errorf("read ptrace event: %w", err)
	}
	return v, nil
}

// signalled delivers a signal. The instruction at t.pc has not run: a step's own trap is always
// reported first.
func (s *stepper) signalled(t *tracee, sig int) error {
	if err := s.curtain.open(); err != nil {
		return err
	}
	t.free = false
	return s.resumeAt(t, sig)
}

// enterHandler notes a handler whose first instruction is the thread's next one.
func (s *stepper) enterHandler(t *tracee, sig int) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.TID, &regs); err != nil {
		return fmt.Errorf("read registers at handler: %w", err)
	}
	lo, hi, err := handlerStack(t.TID, regs.Rsp)
	if err != nil {
		return err
	}
	t.handlers = append(t.handlers, handler{stackLo: lo, stackHi: hi, restarts: t.restarts})
	t.restarts = 0
	t.Events = append(t.Events, Event{Index: len(t.Insns), Kind: Delivered, Signal: sig})
	t.values.now = regs
	t.pc, t.sp, t.outside = regs.Rip, regs.Rsp, 0
	return s.resume(t, 0)
}

// handlerStack says where rsp stays while a handler runs that was entered with this rsp. Its frame
// holds the return address and the ucontext, with the alternate stack at byte 16: a handler on that
// stack is left when rsp leaves the stack, another when rsp rises above its frame.
func handlerStack(tid int, rsp uint64) (lo, hi uint64, err error) {
	const uContext, ucStack = 8, 16
	base, err := peekText(tid, rsp+uContext+ucStack)
	if err != nil {
		return 0, 0, fmt.Errorf("read signal frame: %w", err)
	}
	size, err := peekText(tid, rsp+uContext+ucStack+16)
	if err != nil {
		return 0, 0, fmt.Errorf("read signal frame: %w", err)
	}
	if base <= rsp && rsp-base < size {
		return base, base + size, nil
	}
	return 0, rsp + 8, nil
}

// followHandlers notes that handlers ended, by rt_sigreturn or by a jump out of them.
func (s *stepper) followHandlers(t *tracee) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.TID, &regs); err != nil {
		return fmt.Errorf("read registers in handler: %w", err)
	}
	for n := len(t.handlers) - 1; n >= 0; n-- {
		h := &t.handlers[n]
		kind := Left
		if h.returning {
			kind = Returned
			t.restarts = h.restarts
		} else if h.stackLo <= regs.Rsp && regs.Rsp <= h.stackHi {
			break
		}
		t.handlers = t.handlers[:n]
		t.Events = append(t.Events, Event{Index: len(t.Insns), Kind: kind})
		if kind == Returned {
			break
		}
	}
	if n := len(t.handlers); n > 0 && regs.Rax == unix.SYS_RT_SIGRETURN {
		code, err := peekText(t.TID, t.pc)
		if err != nil {
			return fmt.Errorf("read instruction in handler: %w", err)
		}
		t.handlers[n-1].returning = code&0xffff == 0x050f
	}
	return nil
}

// recordSyscall appends a system call of the image (a static program's), unless it is one that a
// signal interrupted and the kernel has run again: then it is there already.
func (s *stepper) recordSyscall(img *image, t *tracee, next uint64) error {
	if t.restarts != t.pc {
		s.valuer.executed(t)
		s.ran(t, img.place(t.pc))
	}
	t.restarts = 0
	rax, err := peekUser(t.TID, userRAX)
	if err != nil {
		return fmt.Errorf("read system call's result: %w", err)
	}
	const restartSys, restartBlock = 512, 516
	if e := -int64(rax); next == t.pc+2 && e >= restartSys && e <= restartBlock {
		t.restarts = t.pc
	}
	return nil
}

// restarted says that the step from t.pc ran the system call before it again and not the
// instruction at t.pc.
func (s *stepper) restarted(t *tracee, next uint64) bool {
	call := t.restarts
	t.restarts = 0
	return t.pc == call+2 && next == t.pc
}

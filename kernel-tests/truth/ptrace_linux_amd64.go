package truth

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct user, for PTRACE_PEEKUSER.
const (
	userRIP     = 16 * 8
	userRSP     = 19 * 8
	userRAX     = 10 * 8
	userOrigRAX = 15 * 8
)

// x/sys/unix wraps these requests with loops and allocations; the step loop makes three of them for
// every instruction.
func ptrace(request, tid int, addr, data uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0,
		0); e != 0 {
		return e
	}
	return nil
}

func peekUser(tid int, offset uintptr) (v uint64, err error) {
	err = ptrace(unix.PTRACE_PEEKUSR, tid, offset, uintptr(unsafe.Pointer(&v)))
	return v, err
}

func peekText(tid int, addr uint64) (v uint64, err error) {
	err = ptrace(unix.PTRACE_PEEKTEXT, tid, uintptr(addr), uintptr(unsafe.Pointer(&v)))
	return v, err
}

func pokeUser(tid int, offset uintptr, v uint64) error {
	return ptrace(unix.PTRACE_POKEUSR, tid, offset, uintptr(v))
}

// signalCode is si_code of the signal that a thread is stopped with.
func signalCode(tid int) (int32, error) {
	var info unix.Siginfo
	if err := ptrace(unix.PTRACE_GETSIGINFO, tid, 0, uintptr(unsafe.Pointer(&info))); err != nil {
		return 0, fmt.Errorf("read signal of thread %d: %w", tid, err)
	}
	return info.Code, nil
}

// nextStop waits for any traced thread of a process group. The calling OS thread may have other
// children, whose reports are not for us: it started them for others before it came to us.
func nextStop(group int) (tid int, status unix.WaitStatus, err error) {
	for {
		tid, err = unix.Wait4(-group, &status, unix.WALL|unix.WNOTHREAD, nil)
		if err != unix.EINTR {
			return tid, status, err
		}
	}
}

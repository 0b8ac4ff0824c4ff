package sample

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrNotAllowed says that this kernel, or a sandbox, does not let us sample. Tracing does without.
var ErrNotAllowed = errors.New("sampling is not allowed: it takes CAP_PERFMON and CAP_BPF, and a " +
	"kernel and a sandbox that have perf events")

// A clock is a perf event that runs a BPF program each period.
type clock struct{ event int }

// setClock sets a clock on a CPU, or on a thread; the other one is -1. It is still.
func setClock(thread, cpu int, period time.Duration) (clock, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: uint64(period),
		Bits:   unix.PerfBitDisabled,
	}
	fd, err := unix.PerfEventOpen(&attr, thread, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return clock{}, os.NewSyscallError("perf_event_open", err)
	}
	return clock{fd}, nil
}

// notAllowed marks the errors of perf_event_open(2), and of bpf(2), that say that nobody like us
// may sample here.
func notAllowed(err error) error {
	for _, no := range []error{unix.EACCES, unix.EPERM, unix.ENOENT, unix.ENOSYS, unix.EOPNOTSUPP,
		unix.ENODEV} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: %w", ErrNotAllowed, err)
		}
	}
	return err
}

// run gives the clock its program, and starts it.
func (c clock) run(program *ebpf.Program) error {
	err := unix.IoctlSetInt(c.event, unix.PERF_EVENT_IOC_SET_BPF, program.FD())
	if err != nil {
		return fmt.Errorf("give a clock its program: %w", err)
	}
	return c.set(unix.PERF_EVENT_IOC_ENABLE)
}

// set starts or stops the clock: unix.PERF_EVENT_IOC_ENABLE or _DISABLE.
func (c clock) set(how uint) error {
	if err := unix.IoctlSetInt(c.event, how, 0); err != nil {
		return fmt.Errorf("start or stop a clock: %w", err)
	}
	return nil
}

// setPeriod changes the period. The one that has begun begins anew.
func (c clock) setPeriod(period time.Duration) error {
	to := uint64(period)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.event), unix.PERF_EVENT_IOC_PERIOD,
		uintptr(unsafe.Pointer(&to)))
	if errno != 0 {
		return fmt.Errorf("change the period of a clock: %w", errno)
	}
	return nil
}

func (c clock) close() { unix.Close(c.event) }

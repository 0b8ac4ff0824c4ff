package attach

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A Cost is the CPU time that a hit takes, by the class of the probed instruction.
type Cost struct {
	Emulated time.Duration
	Stepped  time.Duration // single-stepped
}

// TypicalCost returns what hits cost in a virtual machine. On bare metal a single-stepped hit costs
// a tenth of it.
func TypicalCost() Cost {
	return Cost{Emulated: 530 * time.Nanosecond, Stepped: 18 * time.Microsecond}
}

// A Calibrator measures what a hit costs on this machine: it keeps probes that report nothing on
// two functions of our own program. Other threads do not disturb it, but all that makes the CPU
// slower does: where it matters, measure again.
type Calibrator struct {
	probes io.Closer
}

// NewCalibrator puts its two probes in. The caller closes it. Cost: a few ms.
func (s *Session) NewCalibrator() (*Calibrator, error) {
	c, err := calibratorOf(s.images.mechanism, s.objects.EmptyProbe)
	if err != nil {
		return nil, fmt.Errorf("measure the cost of a probe hit: %w", err)
	}
	return c, nil
}

// calibratorOf puts the probes in of a program that reports nothing.
func calibratorOf(m uprobe.Mechanism, empty *ebpf.Program) (*Calibrator, error) {
	self, err := target.Open(os.Getpid())
	if err != nil {
		return nil, err
	}
	defer self.Close()
	exe, err := self.Executable()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	offsets, err := ownOffsets(self)
	if err != nil {
		return nil, err
	}
	l, err := m.Put(exe, empty, offsets, nil, self.PID)
	if err != nil {
		return nil, ProbeError(err)
	}
	return &Calibrator{l}, nil
}

// Close takes the probes out.
func (c *Calibrator) Close() error { return c.probes.Close() }

// Measure times some hits of each class. effort is how many times 40 emulated and 5 single-stepped
// ones; each costs some 0.1 ms. report is what reporting adds to it: see Counters.ReportTime.
func (c *Calibrator) Measure(effort int, report time.Duration) Cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Cost{Emulated: timeCalls(emulated, effort, 40) + report,
		Stepped: timeCalls(stepped, effort, 5) + report}
}

// ownOffsets returns where in the file the functions emulated and stepped are.
func ownOffsets(self *target.Process) ([]uint64, error) {
	first, second := addresses()
	mappings, err := self.ExecutableMappings()
	if err != nil {
		return nil, err
	}
	for _, m := range mappings {
		if m.Lo <= min(first, second) && max(first, second) < m.Hi {
			return []uint64{first - m.Lo + m.Offset, second - m.Lo + m.Offset}, nil
		}
	}
	return nil, fmt.Errorf("the functions at %x and %x are in no mapping of the executable", first,
		second)
}

// timeCalls returns the CPU time of a call, the median of some rounds of n.
func timeCalls(call func(), rounds, n int) time.Duration {
	took := make([]time.Duration, rounds)
	for i := range took {
		began := threadTime()
		for range n {
			call()
		}
		took[i] = (threadTime() - began) / time.Duration(n)
	}
	slices.Sort(took)
	return took[rounds/2]
}

// threadTime is the CPU time of the thread so far. The clock cannot fail.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// emulated begins with an instruction that the kernel emulates at a hit, stepped with one that it
// single-steps.
func emulated()
func stepped()

// addresses returns where they are.
func addresses() (emulated, stepped uint64)

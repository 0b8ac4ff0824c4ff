package attach

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/loader/target"
)

// A Cost is the CPU time that a hit takes, by the class of the probed instruction.
type Cost struct {
	Emulated time.Duration
	Stepped  time.Duration // single-stepped
}

// TypicalCost returns what hits cost in a virtual machine. On bare metal a single-stepped hit costs a tenth of it.
func TypicalCost() Cost { return Cost{Emulated: 530 * time.Nanosecond, Stepped: 18 * time.Microsecond} }

// Of each class so many hits are timed; the median of the rounds counts.
const (
	rounds        = 9
	emulatedCalls = 200
	steppedCalls  = 30
)

// reportTime is what the program adds to a bare hit on average; it was measured as 10 to 55 ns.
const reportTime = 30 * time.Nanosecond

// Calibrate measures on this machine what a hit costs: it puts probes that report nothing on two functions of our own program. Cost: some
// 50 ms, mostly waiting.
func (s *Session) Calibrate() (Cost, error) {
	c, err := s.calibrate()
	if err != nil {
		return Cost{}, fmt.Errorf("measure the cost of a probe hit: %w", err)
	}
	return c, nil
}

func (s *Session) calibrate() (Cost, error) {
	self, err := target.Open(os.Getpid())
	if err != nil {
		return Cost{}, err
	}
	defer self.Close()
	exe, err := self.Executable()
	if err != nil {
		return Cost{}, err
	}
	defer exe.Close()
	offsets, err := ownOffsets(self)
	if err != nil {
		return Cost{}, err
	}
	l, err := putProbes(exe, s.objects.Nothing, offsets, nil, self.PID)
	if err != nil {
		return Cost{}, err
	}
	runtime.LockOSThread()
	c := Cost{Emulated: timeCalls(emulated, emulatedCalls) + reportTime, Stepped: timeCalls(stepped, steppedCalls) + reportTime}
	runtime.UnlockOSThread()
	return c, l.Close()
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
	return nil, fmt.Errorf("the functions at %x and %x are in no mapping of the executable", first, second)
}

// timeCalls returns the CPU time of a call, the median of some rounds.
func timeCalls(call func(), n int) time.Duration {
	var took [rounds]time.Duration
	for i := range took {
		began := threadTime()
		for range n {
			call()
		}
		took[i] = (threadTime() - began) / time.Duration(n)
	}
	slices.Sort(took[:])
	return took[rounds/2]
}

// threadTime is the CPU time of the thread so far. The clock cannot fail.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// emulated begins with an instruction that the kernel emulates at a hit, stepped with one that it single-steps.
func emulated()
func stepped()

// addresses returns where they are.
func addresses() (emulated, stepped uint64)

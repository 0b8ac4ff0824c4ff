package attach

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A Cost is the time that a hit takes, by the class of the probed instruction.
type Cost struct {
	Emulated time.Duration
	Stepped  time.Duration // single-stepped
}

// TypicalCost returns what hits cost in a virtual machine. On bare metal a single-stepped hit costs a tenth of it.
func TypicalCost() Cost { return Cost{Emulated: 500 * time.Nanosecond, Stepped: 18 * time.Microsecond} }

// Of each class so many hits are timed; the median of the rounds counts.
const (
	rounds        = 9
	emulatedCalls = 200
	steppedCalls  = 30
)

// Calibrate measures on this machine what a hit costs, by tracing two functions of this program. Cost: some 0.1 s, mostly waiting.
func Calibrate() (Cost, error) {
	c, err := calibrate()
	if err != nil {
		return Cost{}, fmt.Errorf("measure the cost of a probe hit: %w", err)
	}
	return c, nil
}

func calibrate() (Cost, error) {
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
	im, pl, err := planSelf(self)
	if err != nil {
		return Cost{}, err
	}
	s, err := Attach(self, exe, im, pl, Options{Ring: 16 * os.Getpagesize()})
	if err != nil {
		return Cost{}, err
	}
	defer s.Close()
	if err := s.Enable(true); err != nil {
		return Cost{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return Cost{Emulated: timeCalls(emulated, emulatedCalls), Stepped: timeCalls(stepped, steppedCalls)}, nil
}

// planSelf makes a plan of two probes in this program, on its functions emulated and stepped.
func planSelf(self *target.Process) (*image.Image, *plan.Plan, error) {
	first, second := addresses()
	lo, hi := uint64(min(first, second)), uint64(max(first, second))
	mappings, err := self.ExecutableMappings()
	if err != nil {
		return nil, nil, err
	}
	for _, m := range mappings {
		if m.Lo <= lo && hi < m.Hi {
			im := &image.Image{Name: self.Name, Segments: []image.Segment{{Addr: m.Lo, Offset: m.Offset, FileLen: m.Hi - m.Lo, MemLen: m.Hi - m.Lo}}}
			pl := &plan.Plan{Routines: []*plan.Routine{{Routine: &cfg.Routine{Name: "calibration"}}}}
			for _, addr := range []uint64{lo, hi} {
				pl.Sites = append(pl.Sites, plan.Site{Addr: addr, Condition: plan.NoCondition, Base: 4, Offset: 8})
			}
			return im, pl, nil
		}
	}
	return nil, nil, fmt.Errorf("the functions at %x and %x are in no mapping of the executable", lo, hi)
}

// timeCalls returns the time of a call, the median of some rounds.
func timeCalls(call func(), n int) time.Duration {
	var took [rounds]time.Duration
	for i := range took {
		began := time.Now()
		for range n {
			call()
		}
		took[i] = time.Since(began) / time.Duration(n)
	}
	slices.Sort(took[:])
	return took[rounds/2]
}

// emulated begins with an instruction that the kernel emulates at a hit, stepped with one that it single-steps.
func emulated()
func stepped()

// addresses returns where they are.
func addresses() (emulated, stepped uintptr)

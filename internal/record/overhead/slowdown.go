package main

import (
	"fmt"
	"math"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/loader/target"
)

// A nature is what a program does where it is not traced: the time that it spends in the kernel for
// each second in user mode.
type nature struct {
	known      bool
	kernelTime float64
}

// natureOf tells it from what the process used before.
func natureOf(before target.Times) nature {
	const least = 100 * time.Millisecond
	if before.User < least {
		return nature{}
	}
	return nature{true, float64(before.CPU-before.User) / float64(before.User)}
}

// An estimate is how much of the CPU time of a program was its own, how far off that may be, and
// what it was at least; 0: anything.
type estimate struct {
	cpu, own, doubt, least float64
	expected               float64 // the slow-down that the plan lets expect where this does not tell; else 0
}

const (
	mostHit    = 2                     // what a hit takes at most, in hits as measured: beside other work, all take longer than those
	hitDoubt   = 0.15                  // of the cost of hits: they meet colder caches than those of the calibration;
	stepDoubt  = 1                     // single-stepped, they wait for other threads that are, besides
	startDoubt = time.Millisecond      // that a process has been seen to use for what attaching leaves it to do: pages to map, cold caches
	userDoubt  = 0.05                  // of the CPU time
	tickDoubt  = 10 * time.Millisecond // it is told in steps of that, and sampled by the clock tick
	userOfHits = 0.1                   // of the cost of a hit; what the clock tick, late after a trap, takes for time in user mode
)

// A toll is what hits cost by calibration, and how far off that may be.
type toll struct{ cost, doubt time.Duration }

func tollOf(emulated, stepped time.Duration) toll {
	return toll{emulated + stepped, time.Duration(hitDoubt*float64(emulated) + stepDoubt*float64(stepped))}
}

func (t toll) plus(u toll) toll  { return toll{t.cost + u.cost, t.doubt + u.doubt} }
func (t toll) minus(u toll) toll { return toll{t.cost - u.cost, t.doubt - u.doubt} }

// estimate weighs two ways to tell what was the program's own of the CPU time that it used, a toll
// of it for hits. One is what the hits leave, a small difference of large numbers where
// they take nearly all. The other is the time in user mode, for hits are served in the kernel; it
// needs to be known how much of the program's own time is spent there.
func (n nature) estimate(used target.Times, t toll) estimate {
	cpu, hits := float64(used.CPU), float64(t.cost)
	start := min(float64(startDoubt), hits)
	e := estimate{cpu: cpu, own: cpu - hits, doubt: float64(t.doubt) + start + 1, least: cpu - mostHit*hits - start}
	user := max(float64(used.User)-userOfHits*hits, 0)
	userOff := math.Sqrt(math.Pow(userDoubt*cpu, 2) + float64(tickDoubt)*(float64(tickDoubt)+user))
	if n.known {
		own := user * (1 + n.kernelTime)
		doubt := userOff * (1 + n.kernelTime)
		a, b := 1/(e.doubt*e.doubt), 1/(doubt*doubt)
		e.own, e.doubt = (a*e.own+b*own)/(a+b), 1/math.Sqrt(a+b)
	}
	e.own = min(max(e.own, user-userOff, cpu/wpp.MostSlowDown), cpu)
	e.least = max(min(e.least, e.own), 0)
	return e
}

// slower is the slow-down: the CPU time over what was the program's own.
func (e estimate) slower() float64 {
	if e.cpu <= 0 {
		return 1
	}
	return e.cpu / e.own
}

// vague reports whether the doubt is such that only atLeast can be told.
func (e estimate) vague() bool { return e.doubt > mostDoubt*e.own }

// boundless reports whether the program's own time is not to be told from none.
func (e estimate) boundless() bool { return e.own < beyondDoubt*e.doubt }

// beyondDoubt is how many times the doubt a difference has to be to be one.
const beyondDoubt = 1.5

// mostDoubt is what the program's own time may be off by.
const mostDoubt = 0.3

// tell writes the slow-down, as far as it is known.
func (e estimate) tell() string {
	if e.vague() {
		return "at least " + times(e.atLeast())
	}
	return times(e.slower())
}

// tellLikely writes the slow-down, and, where it is in doubt, what it is at least.
func (e estimate) tellLikely() string {
	switch {
	case e.expected > 0:
		return fmt.Sprintf("some %s times, as its plan lets expect (for sure: %s)", factor(e.expected), times(e.atLeast()))
	case e.vague():
		return fmt.Sprintf("some %s, at least %s", times(e.slower()), times(e.atLeast()))
	}
	return times(e.slower())
}

// atLeast is the slow-down where the doubt is the tracer's.
func (e estimate) atLeast() float64 {
	if e.cpu <= 0 {
		return 1
	}
	return e.cpu / min(e.own+e.doubt, e.cpu)
}

// atMost is the slow-down, whatever hits took; 0: it may be any.
func (e estimate) atMost() float64 {
	if e.least == 0 {
		return 0
	}
	return e.cpu / e.least
}

// times writes a slow-down.
func times(slower float64) string {
	if slower > wpp.MostSlowDown-0.05 {
		return fmt.Sprintf("%d times or more", wpp.MostSlowDown)
	}
	return fmt.Sprintf("%.1f times", slower)
}

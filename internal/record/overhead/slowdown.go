package overhead

import (
	"math"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/loader/target"
)

// A KernelShare is what a program does where it is not traced: the time that it spends in the
// kernel for each second in user mode.
type KernelShare struct {
	known   bool
	perUser float64
}

// KernelShareOf is that of a process by what it used before it was traced; not known, where that is
// little.
func KernelShareOf(before target.Times) KernelShare {
	const least = 100 * time.Millisecond
	if before.User < least {
		return KernelShare{}
	}
	return KernelShare{true, float64(before.CPU-before.User) / float64(before.User)}
}

// An Estimate says how much of the CPU time of a program was its own, how far off that may be, and
// what it was at least; 0: anything. All are in ns.
type Estimate struct {
	cpu, own, doubt, least float64
	// Expected is the slow-down that the plan lets expect where hits leave too little to know one;
	// 0 elsewhere.
	expected float64
}

const (
	// what a hit takes at most, in hits as measured: beside other work, all take longer than those
	mostHit = 2
	// of the cost of hits: they meet colder caches than those of the calibration;
	hitDoubt = 0.15
	// single-stepped, they wait for other threads that are, besides
	stepDoubt = 1
	// that a process has been seen to use for what attaching leaves it to do: pages to map, cold
	// caches
	startDoubt = time.Millisecond
	userDoubt  = 0.05 // of the CPU time
	// it is known in steps of that, and sampled by the clock tick
	tickDoubt = 10 * time.Millisecond
	// of the cost of a hit; what the clock tick, late after a trap, takes for time in user mode
	userOfHits = 0.1
)

// A HitCost is what hits cost by calibration, and how far off that may be.
type HitCost struct{ Cost, doubt time.Duration }

// NewHitCost is the cost of hits of which the emulated took so much in all, and the single-stepped.
func NewHitCost(emulated, stepped time.Duration) HitCost {
	doubt := hitDoubt*float64(emulated) + stepDoubt*float64(stepped)
	return HitCost{emulated + stepped, time.Duration(doubt)}
}

// Plus is the cost of both.
func (c HitCost) Plus(d HitCost) HitCost { return HitCost{c.Cost + d.Cost, c.doubt + d.doubt} }

// Minus is what the cost has grown by since it was d.
func (c HitCost) Minus(d HitCost) HitCost { return HitCost{c.Cost - d.Cost, c.doubt - d.doubt} }

// Estimate weighs two ways to know what was the program's own of the CPU time that it used, of
// which hits took a part. One is what the hits leave, a small difference of large numbers where
// they take nearly all. The other is the time in user mode, for hits are served in the kernel; it
// needs to be known how much of the program's own time is spent there.
func (n KernelShare) Estimate(used target.Times, t HitCost) Estimate {
	cpu, hits := float64(used.CPU), float64(t.Cost)
	start := min(float64(startDoubt), hits)
	e := Estimate{cpu: cpu, own: cpu - hits, doubt: float64(t.doubt) + start + 1,
		least: cpu - mostHit*hits - start}
	user := max(float64(used.User)-userOfHits*hits, 0)
	userOff := math.Sqrt(math.Pow(userDoubt*cpu, 2) + float64(tickDoubt)*(float64(tickDoubt)+user))
	if n.known {
		own := user * (1 + n.perUser)
		doubt := userOff * (1 + n.perUser)
		a, b := 1/(e.doubt*e.doubt), 1/(doubt*doubt)
		e.own, e.doubt = (a*e.own+b*own)/(a+b), 1/math.Sqrt(a+b)
	}
	e.own = min(max(e.own, user-userOff, cpu/wpp.MostSlowDown), cpu)
	e.least = max(min(e.least, e.own), 0)
	return e
}

// Slower is the slow-down: the CPU time over what was the program's own.
func (e Estimate) Slower() float64 {
	if e.cpu <= 0 {
		return 1
	}
	return e.cpu / e.own
}

// Vague reports whether the doubt is such that only AtLeast is known.
func (e Estimate) Vague() bool { return e.doubt > mostDoubt*e.own }

// Boundless reports whether the program's own time may as well be none.
func (e Estimate) Boundless() bool { return e.own < beyondDoubt*e.doubt }

// beyondDoubt is how many times the doubt a difference has to be to be one.
const beyondDoubt = 1.5

// mostDoubt is what the program's own time may be off by.
const mostDoubt = 0.3

// AtLeast is the slow-down where the doubt is the tracer's.
func (e Estimate) AtLeast() float64 {
	if e.cpu <= 0 {
		return 1
	}
	return e.cpu / min(e.own+e.doubt, e.cpu)
}

// AtMost is the slow-down, whatever hits took; 0: it may be any.
func (e Estimate) AtMost() float64 {
	if e.least == 0 {
		return 0
	}
	return e.cpu / e.least
}

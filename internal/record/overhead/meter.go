package overhead

import (
	"log/slog"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A Meter measures how much slower a process runs: its CPU time over what of that was its own. One
// goroutine uses it at a time.
type Meter struct {
	// KernelShare is that of the process. It may be set before the recording begins.
	KernelShare KernelShare
	// Forecast is the slow-down of the program's own code that the plan lets expect; 0: there is
	// none.
	Forecast float64
	// Traced is which share of its CPU time that code has, by samples; of none: it is not known.
	// The rest, in the kernel, in libraries and in other code, takes as long as without probes.
	Traced samples.Share

	calibrator *attach.Calibrator // nil: there is none, and the cost is the usual one
	lent       bool               // the calibrator is another meter's
	cost       attach.Cost        // of a hit, measured last
	hits       uint64             // that have been charged
	stepped    uint64             // of them, single-stepped
	spent      HitCost            // on these
	emulated   time.Duration      // of it, on those not single-stepped
	measuredAt uint64             // hits, when the cost was measured last
	samples    []Sample           // of the last window, the oldest first: see keep
}

// NewMeter measures the cost of a hit on this machine, which takes some milliseconds. Who makes a
// meter closes it.
func NewMeter(s *attach.Session, log *slog.Logger) *Meter {
	c, err := s.NewCalibrator()
	if err != nil {
		log.Info("the usual cost of a hit is assumed", "reason", err)
		return UsualMeter()
	}
	m := &Meter{calibrator: c}
	m.cost = m.measure(manyBatches, attach.TypicalReport)
	log.Info("measured", "hit", m.cost.Emulated, "single-stepped hit", m.cost.Stepped)
	return m
}

// UsualMeter is a meter that takes hits for as costly as they usually are.
func UsualMeter() *Meter { return &Meter{cost: attach.TypicalCost()} }

// Lend returns a meter of another process with the same calibrator, which stays this meter's.
func (m *Meter) Lend() *Meter { return &Meter{calibrator: m.calibrator, lent: true, cost: m.cost} }

// IsCalibrated reports whether the cost of a hit is measured, and not what is usual.
func (m *Meter) IsCalibrated() bool { return m.calibrator != nil }

// Cost is that of a hit, as measured last.
func (m *Meter) Cost() attach.Cost { return m.cost }

// Hits is the number of hits that have been charged.
func (m *Meter) Hits() uint64 { return m.hits }

// Batches of hits, each some 0.1 ms.
const (
	manyBatches = 15
	someBatches = 5 // many times a second
)

// measure is what a hit costs now, report of it for reporting: the least of some batches, for what
// disturbs one, and caches that are cold at first, make it longer alone.
func (m *Meter) measure(batches int, report time.Duration) attach.Cost {
	least := m.calibrator.Measure(1, report)
	for range batches - 1 {
		c := m.calibrator.Measure(1, report)
		least.Emulated, least.Stepped = min(least.Emulated, c.Emulated), min(least.Stepped,
			c.Stepped)
	}
	return least
}

// Close frees the calibrator, unless it is another's.
func (m *Meter) Close() {
	if m.calibrator != nil && !m.lent {
		m.calibrator.Close()
	}
}

// A Sample is what the process has used up to a moment since the recording began.
type Sample struct {
	at   time.Time
	Used target.Times
	Hits HitCost // of it
}

const (
	window        = time.Second
	longestGauged = time.Minute            // of a process that hardly runs
	leastCPU      = 200 * time.Millisecond // in a window; from less, nothing follows
)

// SamplePause is how often a sample is to be taken.
const SamplePause = 200 * time.Millisecond

// Add takes a sample: what the target has used and its hits so far, stepped of them single-stepped,
// and what reporting one takes. What a hit costs depends on how busy the machine is; so it is
// measured again for the hits since the last sample, if there are any.
func (m *Meter) Add(used target.Times, hits, stepped uint64, report time.Duration) Sample {
	if m.calibrator != nil && hits > m.measuredAt {
		m.measuredAt = hits
		m.cost = m.measure(someBatches, report)
	}
	s := Sample{at: time.Now(), Used: used, Hits: m.Charge(hits, stepped)}
	m.keep(s)
	return s
}

// keep appends a sample, and drops those from before the last window: a second in which the target
// has run for long enough that something follows.
func (m *Meter) keep(s Sample) {
	m.samples = append(m.samples, s)
	for len(m.samples) > 2 {
		second := m.samples[1]
		long := s.at.Sub(second.at)
		if long < window || long < longestGauged && s.Used.Sub(second.Used).CPU < leastCPU {
			return
		}
		m.samples = m.samples[1:]
	}
}

// Unreported is what a hit costs now that is not reported. It is measured, which takes
// milliseconds.
func (m *Meter) Unreported() time.Duration {
	if m.calibrator == nil {
		return attach.TypicalCost().Emulated - attach.TypicalReport
	}
	return m.measure(manyBatches, 0).Emulated
}

// Charge takes the hits so far, stepped of them single-stepped, and returns what they have cost.
func (m *Meter) Charge(hits, stepped uint64) HitCost {
	stepped = max(min(stepped, hits), m.stepped)
	hits = max(hits, m.hits+stepped-m.stepped)
	newStepped := stepped - m.stepped
	emulated := time.Duration(hits-m.hits-newStepped) * m.cost.Emulated
	m.emulated += emulated
	m.spent = m.spent.Plus(NewHitCost(emulated, time.Duration(newStepped)*m.cost.Stepped))
	m.hits, m.stepped = hits, stepped
	return m.spent
}

// HitTime is what a hit has taken that is not single-stepped, on average; 0: none has been charged.
// Hits that came to more by calibration than all the CPU time that the target used took that.
func (m *Meter) HitTime(cpu, hits time.Duration) time.Duration {
	n := m.hits - m.stepped
	if n == 0 {
		return 0
	}
	mean := float64(m.emulated) / float64(n)
	if hits > cpu {
		mean *= float64(cpu) / float64(hits)
	}
	return time.Duration(mean)
}

// Recent is the slow-down over the last window; false: the target has hardly run in it.
func (m *Meter) Recent() (Estimate, bool) {
	if len(m.samples) == 0 {
		return Estimate{}, false
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	used := last.Used.Sub(first.Used)
	if used.CPU < leastCPU {
		return Estimate{}, false
	}
	return m.KernelShare.Estimate(used, last.Hits.Minus(first.Hits)), true
}

// expected is the slow-down of all that the process does, by its plan; 0: there is none, or it is
// not known how much of its time goes elsewhere.
func (m *Meter) expected() float64 {
	const enough = 20 // samples
	switch {
	case m.Forecast == 0:
		return 0
	case m.Traced.Of >= enough:
		return 1 + m.Traced.Value()*(m.Forecast-1)
	case m.KernelShare.known:
		return m.Forecast / (1 + m.KernelShare.perUser)
	}
	return 0
}

// Exceeds reports whether the target is slowed down more than that: over a whole window, or beyond
// doubt. Where hits take so much that what they leave is not known, it is as slow as the plan lets
// expect.
func (m *Meter) Exceeds(most float64) (Estimate, bool) {
	e, known := m.Recent()
	if !known {
		return e, false
	}
	whole := m.samples[len(m.samples)-1].at.Sub(m.samples[0].at) >= window
	if expected := m.expected(); e.Boundless() && expected > e.Slower() {
		e.expected = expected
	}
	return e, e.AtLeast() > most || whole && max(e.Slower(), e.expected) > most
}

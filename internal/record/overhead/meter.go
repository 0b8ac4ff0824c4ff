package main

import (
	"log/slog"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A gauge measures how much slower the target runs: its CPU time over what of that was its own.
type gauge struct {
	calibrator *attach.Calibrator // nil: there is none, and the cost is the usual one
	lent       bool               // it is another's, too
	cost       attach.Cost        // of a hit, measured last
	hits       uint64             // that have been charged; stepped: of them, single-stepped
	stepped    uint64
	spent      toll          // on these
	emulated   time.Duration // of it, on those not single-stepped
	measuredAt uint64        // hits, when the cost was measured last
	nature     nature
	forecast   float64  // of the slow-down of the program's own code by the plan; 0: there is none
	samples    []sample // of the last window, the oldest first: see keep
}

// newGauge measures the cost of a hit on this machine.
func newGauge(s *attach.Session, log *slog.Logger) *gauge {
	c, err := s.NewCalibrator()
	if err != nil {
		log.Info("the usual cost of a hit is assumed", "reason", err)
		return &gauge{cost: attach.TypicalCost()}
	}
	g := &gauge{calibrator: c}
	g.cost = g.measure(manyBatches, attach.TypicalReport)
	log.Info("measured", "hit", g.cost.Emulated, "single-stepped hit", g.cost.Stepped)
	return g
}

// Batches of hits, each some 0.1 ms.
const (
	manyBatches = 15
	someBatches = 5 // many times a second
)

// measure is what a hit costs now, report of it for reporting: the least of some batches, for what
// disturbs one, and caches that are cold at first, make it longer alone.
func (g *gauge) measure(batches int, report time.Duration) attach.Cost {
	least := g.calibrator.Measure(1, report)
	for range batches - 1 {
		c := g.calibrator.Measure(1, report)
		least.Emulated, least.Stepped = min(least.Emulated, c.Emulated), min(least.Stepped, c.Stepped)
	}
	return least
}

func (g *gauge) close() {
	if g.calibrator != nil && !g.lent {
		g.calibrator.Close()
	}
}

// A sample is what the target has used up to a moment since the recording began.
type sample struct {
	at   time.Time
	used target.Times
	hits toll // of it
}

const (
	window        = time.Second
	longestGauged = time.Minute            // of a process that hardly runs
	leastCPU      = 200 * time.Millisecond // in a window; from less, nothing follows
	samplePause   = 200 * time.Millisecond
)

// add takes a sample: what the target has used and its hits so far, stepped of them single-stepped,
// and what reporting one takes. What a hit costs depends on how busy the machine is; so it is
// measured again for the hits since the last sample, if there are any.
func (g *gauge) add(used target.Times, hits, stepped uint64, report time.Duration) sample {
	if g.calibrator != nil && hits > g.measuredAt {
		g.measuredAt = hits
		g.cost = g.measure(someBatches, report)
	}
	s := sample{at: time.Now(), used: used, hits: g.charge(hits, stepped)}
	g.keep(s)
	return s
}

// keep appends a sample, and drops those from before the last window: a second in which the target
// has run for long enough that something follows.
func (g *gauge) keep(s sample) {
	g.samples = append(g.samples, s)
	for len(g.samples) > 2 {
		second := g.samples[1]
		long := s.at.Sub(second.at)
		if long < window || long < longestGauged && s.used.Sub(second.used).CPU < leastCPU {
			return
		}
		g.samples = g.samples[1:]
	}
}

// unreported is what a hit costs now that is not reported.
func (g *gauge) unreported() time.Duration {
	if g.calibrator == nil {
		return attach.TypicalCost().Emulated - attach.TypicalReport
	}
	return g.measure(manyBatches, 0).Emulated
}

// charge takes the hits so far, stepped of them single-stepped, and returns what they have cost.
func (g *gauge) charge(hits, stepped uint64) toll {
	stepped = max(min(stepped, hits), g.stepped)
	hits = max(hits, g.hits+stepped-g.stepped)
	newStepped := stepped - g.stepped
	emulated := time.Duration(hits-g.hits-newStepped) * g.cost.Emulated
	g.emulated += emulated
	g.spent = g.spent.plus(tollOf(emulated, time.Duration(newStepped)*g.cost.Stepped))
	g.hits, g.stepped = hits, stepped
	return g.spent
}

// hitTime is what a hit has taken that is not single-stepped, on average; 0: none has been charged.
// Hits that came to more by calibration than all the CPU time that the target used took that.
func (g *gauge) hitTime(cpu, hits time.Duration) time.Duration {
	n := g.hits - g.stepped
	if n == 0 {
		return 0
	}
	mean := float64(g.emulated) / float64(n)
	if hits > cpu {
		mean *= float64(cpu) / float64(hits)
	}
	return time.Duration(mean)
}

// recent is the slow-down over the last window; false: the target has hardly run in it.
func (g *gauge) recent() (estimate, bool) {
	if len(g.samples) == 0 {
		return estimate{}, false
	}
	first, last := g.samples[0], g.samples[len(g.samples)-1]
	used := last.used.Sub(first.used)
	if used.CPU < leastCPU {
		return estimate{}, false
	}
	return g.nature.estimate(used, last.hits.minus(first.hits)), true
}

// exceeds reports whether the target is slowed down more than that: over a whole window, or beyond
// doubt. Where hits take so much that what they leave cannot be told, it is as slow as the plan lets
// expect.
func (g *gauge) exceeds(most float64) (estimate, bool) {
	e, known := g.recent()
	if !known {
		return e, false
	}
	whole := g.samples[len(g.samples)-1].at.Sub(g.samples[0].at) >= window
	if expected := g.forecast / (1 + g.nature.kernelTime); g.nature.known && e.boundless() && expected > e.slower() {
		e.expected = expected
	}
	return e, e.atLeast() > most || whole && max(e.slower(), e.expected) > most
}

// takeSample asks what the target has used so far, if it can still be told.
func (r *recording) takeSample() {
	used, hits, stepped, err := r.usedAndHits()
	if err != nil {
		return
	}
	report, known := r.session.ReportTime()
	if !known {
		report = attach.TypicalReport
	}
	r.last = r.gauge.add(used.Sub(r.usedBefore), hits, stepped, report)
}

// usedAndHits asks for both at one moment, as nearly as it gets: on a busy machine, the target may
// run for long between two questions of ours.
func (r *recording) usedAndHits() (used target.Times, hits, stepped uint64, err error) {
	const tries, near, few = 5, 200 * time.Microsecond, 50 // few threads: to ask of more takes longer anyway
	for range tries {
		before, err := r.used()
		if err != nil {
			return used, 0, 0, err
		}
		hits, stepped = r.hits()
		if used, err = r.used(); err != nil {
			return used, 0, 0, err
		}
		if used.CPU-before.CPU < near || len(r.all) > few {
			break
		}
	}
	return used, hits, stepped, nil
}

// hits sums up the hits so far, and of them those single-stepped. Those that have not been reported
// yet, which may be many where the same one comes again and again, the kernel is asked for, and
// those that are not, while probes go in and out or are counted alone.
func (r *recording) hits() (hits, stepped uint64) {
	if m, err := r.session.Metrics(); err == nil {
		hits = m.Unreported
	}
	for _, t := range r.all {
		hits += t.hits
		stepped += t.stepped
	}
	live, _ := r.process.Threads() // none, if the process has ended
	for _, tid := range live {
		h, err := r.session.Hits(tid)
		if err != nil {
			continue
		}
		if t := r.threads[uint32(tid)]; t != nil {
			h.Made -= min(h.Made, t.hits)
		}
		hits += h.Made
		if h.Repeating > 0 && r.program.plan.Sites[h.Site].Stepped {
			stepped += h.Repeating
		}
	}
	return hits, stepped
}

package main

import (
	"fmt"
	"log/slog"
	"time"

	"wpptrace/loader/attach"
)

// A gauge measures how much slower the target runs: its CPU time over what is left of that without the cost of its hits.
type gauge struct {
	calibrator *attach.Calibrator // nil: there is none, and the cost is the usual one
	cost       attach.Cost        // of a hit, measured last
	hits       uint64             // up to the last sample; stepped: of them, single-stepped
	stepped    uint64
	spent      time.Duration // on these
	samples    []sample      // of the last window, the oldest first
}

// newGauge measures the cost of a hit on this machine.
func newGauge(s *attach.Session, log *slog.Logger) *gauge {
	c, err := s.NewCalibrator()
	if err != nil {
		log.Info("the usual cost of a hit is assumed", "reason", err)
		return &gauge{cost: attach.TypicalCost()}
	}
	const effort = 15
	cost := c.Measure(effort)
	log.Info("measured", "hit", cost.Emulated, "single-stepped hit", cost.Stepped)
	return &gauge{calibrator: c, cost: cost}
}

func (g *gauge) close() {
	if g.calibrator != nil {
		g.calibrator.Close()
	}
}

// A sample is what the target has used up to a moment since the recording began.
type sample struct {
	at   time.Time
	cpu  time.Duration
	hits time.Duration // of it, the cost of hits by calibration
}

const (
	window      = time.Second
	leastCPU    = 50 * time.Millisecond // in a window; of less, nothing follows
	mostSlower  = 100                   // what is beyond cannot be told from the error of the calibration
	samplePause = 200 * time.Millisecond
)

// add takes a sample: the CPU time and the hits of the target so far, stepped of them single-stepped. What a hit costs depends on how busy the machine is;
// so it is measured again for the hits since the last sample.
func (g *gauge) add(cpu time.Duration, hits, stepped uint64) sample {
	if g.calibrator != nil {
		const effort = 3
		g.cost = g.calibrator.Measure(effort)
	}
	stepped = max(min(stepped, hits), g.stepped)
	hits = max(hits, g.hits+stepped-g.stepped)
	newStepped := stepped - g.stepped
	g.spent += time.Duration(newStepped)*g.cost.Stepped + time.Duration(hits-g.hits-newStepped)*g.cost.Emulated
	g.hits, g.stepped = hits, stepped
	s := sample{at: time.Now(), cpu: cpu, hits: g.spent}
	g.samples = append(g.samples, s)
	for len(g.samples) > 2 && s.at.Sub(g.samples[1].at) >= window {
		g.samples = g.samples[1:]
	}
	return s
}

// recent is the slow-down over the last window; false: the window is not full yet, or the target has hardly run.
func (g *gauge) recent() (float64, bool) {
	if len(g.samples) == 0 {
		return 0, false
	}
	first, last := g.samples[0], g.samples[len(g.samples)-1]
	cpu := last.cpu - first.cpu
	if last.at.Sub(first.at) < window || cpu < leastCPU {
		return 0, false
	}
	return slower(cpu, last.hits-first.hits), true
}

// hitDoubt is by how much hits may cost more than they do in the calibration, with its warm caches and its one thread. Where nearly all of the time goes
// into hits, what is left for the program is a small difference of large numbers: for the target's sake the doubt counts against the tracer.
const hitDoubt = 1.5

// slower is the slow-down of something that took this CPU time, of which this for hits: an estimate on the high side.
func slower(cpu, hits time.Duration) float64 {
	return float64(cpu) / float64(max(cpu-time.Duration(hitDoubt*float64(hits)), cpu/mostSlower))
}

// times writes a slow-down.
func times(slower float64) string {
	if slower >= mostSlower {
		return fmt.Sprintf("%d times or more", mostSlower)
	}
	return fmt.Sprintf("%.1f times", slower)
}

// takeSample asks what the target has used so far, if it can still be told.
func (r *recording) takeSample() {
	if cpu, err := r.cpu(); err == nil {
		hits, stepped := r.hits()
		r.last = r.gauge.add(cpu-r.cpuBefore, hits, stepped)
	}
}

// hits sums up the hits so far, and of them those single-stepped. Those that have not been reported yet, which may be many where the same one comes again and
// again, the kernel is asked for.
func (r *recording) hits() (hits, stepped uint64) {
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

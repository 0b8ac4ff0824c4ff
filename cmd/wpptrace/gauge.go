package main

import (
	"log/slog"
	"time"

	"wpptrace/loader/attach"
)

// A gauge measures how much slower the target runs: its CPU time over what is left of that without the cost of its hits.
type gauge struct {
	cost    attach.Cost
	samples []sample // of the last window, the oldest first
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

// add takes a sample.
func (g *gauge) add(s sample) {
	g.samples = append(g.samples, s)
	for len(g.samples) > 2 && s.at.Sub(g.samples[1].at) >= window {
		g.samples = g.samples[1:]
	}
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

// slower is the slow-down of something that took this CPU time, of which this for hits.
func slower(cpu, hits time.Duration) float64 {
	return float64(cpu) / float64(max(cpu-hits, cpu/mostSlower))
}

// takeSample asks what the target has used so far, if it can still be told.
func (r *recording) takeSample() {
	cpu, err := r.cpu()
	if err != nil {
		return
	}
	r.last = sample{at: time.Now(), cpu: cpu - r.cpuBefore, hits: r.hitTime()}
	r.gauge.add(r.last)
}

// hitTime is what all hits so far have cost. Those that have not been reported yet are asked for where the kernel can tell.
func (r *recording) hitTime() (sum time.Duration) {
	for _, t := range r.all {
		hits, stepped := t.hits, t.stepped
		if h, err := r.session.Hits(int(t.id)); err == nil && r.threads[t.id] == t {
			hits = max(hits, h.Made)
			if h.Repeating > 0 && r.program.plan.Sites[h.Site].Stepped {
				stepped += h.Repeating
			}
		}
		sum += time.Duration(stepped)*r.gauge.cost.Stepped + time.Duration(hits-min(stepped, hits))*r.gauge.cost.Emulated
	}
	return sum
}

// calibrate measures the cost of a hit on this machine, or takes the usual one.
func calibrate(s *attach.Session, log *slog.Logger) attach.Cost {
	c, err := s.Calibrate()
	if err != nil {
		log.Info("the usual cost of a hit is assumed", "reason", err)
		return attach.TypicalCost()
	}
	log.Info("calibrated", "hit", c.Emulated, "single-stepped hit", c.Stepped)
	return c
}

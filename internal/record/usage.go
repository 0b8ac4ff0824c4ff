package main

import (
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

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
	r.last = r.meter.Add(used.Sub(r.usedBefore), hits, stepped, report)
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

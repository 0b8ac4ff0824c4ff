package record

import (
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A usage is what a process uses while it is recorded, and what tracing costs it.
type usage struct {
	used    func() (target.Times, error) // by the process so far
	meter   *overhead.Meter
	threads *threads
	before  target.Times    // what had been used when the recording began
	first   overhead.Sample // when the recording began
	last    overhead.Sample // the last that could be taken
}

// Used is what the process has used so far.
func (u *usage) Used() (target.Times, error) { return u.used() }

// HitCost is what a hit costs the process.
func (u *usage) HitCost() time.Duration { return u.meter.Cost().Emulated }

// Recorded is how many hits windows have recorded so far, by site.
func (u *usage) Recorded() []uint64 { return u.threads.recorded }

// begin notes that the recording begins.
func (u *usage) begin() (err error) {
	if u.before, err = u.used(); err != nil {
		return err
	}
	u.sample()
	u.first = u.last
	return nil
}

// sample asks what the process has used so far, if that is known yet.
func (u *usage) sample() {
	used, hits, stepped, err := u.usedAndHits()
	if err != nil {
		return
	}
	report, known := u.threads.session.Counters().ReportTime()
	if !known {
		report = attach.TypicalReport
	}
	u.last = u.meter.Add(used.Sub(u.before), hits, stepped, report)
}

// usedAndHits asks for both at one moment, as nearly as it gets: on a busy machine, the process may
// run for long between two questions of ours.
func (u *usage) usedAndHits() (used target.Times, hits, stepped uint64, err error) {
	// few threads: to ask of more takes longer anyway
	const tries, near, few = 5, 200 * time.Microsecond, 50
	for range tries {
		before, err := u.used()
		if err != nil {
			return used, 0, 0, err
		}
		hits, stepped = u.threads.hits()
		if used, err = u.used(); err != nil {
			return used, 0, 0, err
		}
		if used.CPU-before.CPU < near || len(u.threads.all) > few {
			break
		}
	}
	return used, hits, stepped, nil
}

// reading is what the process has used up to now, with its hits as they are charged; false: it has
// exited.
func (u *usage) reading() (overhead.Reading, bool) {
	hits := u.meter.Charge(u.threads.hits()) // first: no hit is charged to a time before it
	used, err := u.used()
	return overhead.Reading{At: time.Now(), Used: used, Hits: hits, N: u.meter.Hits()}, err == nil
}

// traced is the CPU time that the process has used since the recording began, and of it the cost of
// hits by calibration.
func (u *usage) traced() (cpu, hits time.Duration) {
	return u.last.Used.Sub(u.first.Used).CPU, u.last.Hits.Minus(u.first.Hits).Cost
}

// hitTime is what a hit took that was not single-stepped; 0, if that is not known.
func (u *usage) hitTime() time.Duration {
	if !u.meter.IsCalibrated() {
		return 0
	}
	return u.meter.HitTime(u.traced())
}

// addSlowDown adds that of the whole recording, as far as it is known.
func (u *usage) addSlowDown(f *wpp.Figures) {
	if u.last.Used.CPU <= 0 {
		return
	}
	e := u.meter.KernelShare.Estimate(u.last.Used.Sub(u.first.Used),
		u.last.Hits.Minus(u.first.Hits))
	if !e.Vague() {
		f.SlowDown = e.Slower()
		return
	}
	f.SlowDown, f.SlowDownVague, f.SlowDownMost = e.AtLeast(), true, e.AtMost()
	if !e.Boundless() {
		f.SlowDownLikely = e.Slower()
	}
}

// loadTime is how long the load of a process is measured, loadGlances how often it is looked
// meanwhile whether it runs.
const (
	loadTime    = 100 * time.Millisecond
	loadGlances = 20
)

// A load is what a process makes of the machine now, 1 for one CPU: what it uses, and what it would
// use if no other one kept it from that, up to one CPU.
type load struct{ uses, wants float64 }

// load is measureLoad, without its wait where the process was sampled, and hardly sleeps.
func (s *sampling) load(p *target.Process) (used target.Times, now load, err error) {
	const enough = 500 * time.Millisecond
	if s == nil || s.counts.Wall < enough {
		return measureLoad(p)
	}
	now.uses = float64(s.counts.CPUTime) / float64(s.counts.Wall)
	if now.wants = now.uses; now.wants < hardly {
		return measureLoad(p)
	}
	if used, err = p.Times(); err != nil {
		return used, now, gone(p, err)
	}
	return used, now, nil
}

// measureLoad returns what a process has used in its life, and its load.
func measureLoad(p *target.Process) (used target.Times, now load, err error) {
	began := time.Now()
	before, err := p.Times()
	if err != nil {
		return used, now, gone(p, err)
	}
	ready := 0
	for range loadGlances {
		if p.Wait(loadTime / loadGlances); p.Runnable() {
			ready++
		}
	}
	if used, err = p.Times(); err != nil {
		return used, now, gone(p, err)
	}
	now.uses = float64(used.CPU-before.CPU) / float64(time.Since(began))
	now.wants = max(now.uses, float64(ready)/loadGlances)
	return used, now, nil
}

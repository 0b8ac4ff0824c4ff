package overhead

import (
	"time"

	"wpptrace/loader/target"
)

// A tracedUse is what a process has used, of it the cost of hits, and how long that took.
type tracedUse struct {
	target.Times
	hits HitCost
	long time.Duration
}

func (u *tracedUse) add(v tracedUse) {
	u.CPU, u.User = u.CPU+v.CPU, u.User+v.User
	u.hits, u.long = u.hits.Plus(v.hits), u.long+v.long
}

func (u tracedUse) minus(v tracedUse) tracedUse {
	return tracedUse{u.Times.Sub(v.Times), u.hits.Minus(v.hits), u.long - v.long}
}

// own is what hits, by calibration, have left of the CPU time.
func (u tracedUse) own() float64 { return max(float64(u.CPU-u.hits.Cost), 0) }

// A Reading is what a process has used up to a moment.
type Reading struct {
	At   time.Time
	Used target.Times
	Hits HitCost // of it
	N    uint64  // how many hits
}

// An account is what a process has used since its probes went in first, by what stood meanwhile.
type account struct {
	last      Reading
	all       tracedUse
	inWindows tracedUse // of all
	inChanges tracedUse // of all: while probes go in or out

	before, changesBefore tracedUse // all and inChanges, before the recording began
}

// begin notes that the recording begins.
func (a *account) begin() { a.before, a.changesBefore = a.all, a.inChanges }

// add takes account of what has been used since the last reading, as part of some use too; nil: of
// none.
func (a *account) add(now Reading, part *tracedUse) (more tracedUse) {
	more = tracedUse{now.Used.Sub(a.last.Used), now.Hits.Minus(a.last.Hits), now.At.Sub(a.last.At)}
	a.last = now
	a.all.add(more)
	if part != nil {
		part.add(more)
	}
	return more
}

// free is what was used while no probe stood, but for those that are counted.
func (a *account) free() tracedUse { return a.all.minus(a.inWindows).minus(a.inChanges) }

// apportion divides the cost of hits since a window was opened between the window, up to its end,
// taking its probes out, and what was afterwards: which of them were single-stepped is known when
// they have been read. It returns what those took that came until the probes were out.
func (a *account) apportion(opened, closed, out Reading) HitCost {
	all := a.last.Hits.Minus(opened.Hits)
	until := func(r Reading) HitCost {
		share := float64(r.N-opened.N) / float64(max(a.last.N-opened.N, 1))
		return HitCost{time.Duration(share * float64(all.Cost)),
			time.Duration(share * float64(all.doubt))}
	}
	inWindow, inBoth := until(closed), until(out)
	late := inWindow.Minus(closed.Hits.Minus(opened.Hits))
	a.inWindows.hits = a.inWindows.hits.Plus(late)
	a.inChanges.hits = a.inChanges.hits.Plus(inBoth.Minus(out.Hits.Minus(opened.Hits))).Minus(late)
	return inBoth
}

// mostlyHits reports whether hits take more of the time in windows than all else, so that what they
// leave says little.
func (a *account) mostlyHits() bool { return 2*a.inWindows.hits.Cost > a.inWindows.CPU }

// notableHits reports whether they take so much of it that what they leave may be odd.
func (a *account) notableHits() bool {
	return float64(a.inWindows.hits.Cost) > notable*float64(a.inWindows.CPU)
}

// Where hits take a notable share of the CPU time in windows, and what they leave there is odd
// times what the process uses else, they may be costlier than calibrated: of a program that slept,
// single-stepped ones left up to 800 times that. Few hits may, too, where they wait for each other,
// or bring pages in. So they may where windows are too few to be certain: of one that ran 327 times
// slower, they left 420 times what the only window was; of one with many probes and few hits in the
// only window, totals were 218 times off.
const (
	notable = 0.25
	odd     = 3
	certain = 3
)

// mostDoubts is how many times the doubt something is off at most: one doubt it is often.
const mostDoubts = 3

// usualDoubts is how many times the doubt something is off 5 times in 100.
const usualDoubts = 2

// A Sampled is which share of the process's own CPU time windows were. It lies between Least and
// Most; Least is 0 where only Most is known.
type Sampled struct{ Share, Least, Most float64 }

// sampled is which share of the process's own CPU time so many windows were.
func (a *account) sampled(windows uint64, k KernelShare, c *Controls) Sampled {
	free, without := a.rest()
	share := func(own float64) float64 { return own / (own + without) }
	cpu := float64(a.inWindows.CPU)
	if own := c.ownTime(); own.IsKnown() && a.mostlyHits() {
		// what hits leave is in more doubt than it seems
		lo, hi := own.Interval()
		return Sampled{share(min(own.Value, cpu)), share(min(lo, cpu)), share(min(hi, cpu))}
	}
	e := k.Estimate(a.inWindows.Times, a.inWindows.hits)
	doubtful := windows < certain || e.own > odd*free.usual(a.inWindows.long)
	if a.mostlyHits() || e.Vague() || doubtful {
		return Sampled{share(e.own), 0, share(min(e.own+mostDoubts*e.doubt, e.cpu))}
	}
	return Sampled{share(e.own), share(max(e.own-usualDoubts*e.doubt, e.own/mostDoubts)),
		share(min(e.own+usualDoubts*e.doubt, e.cpu))}
}

// rest is what the recording has used in no window: while no probe stood, and with what of the rest
// was the process's own, in ns.
func (a *account) rest() (free tracedUse, own float64) {
	free = a.free().minus(a.before.minus(a.changesBefore))
	changes := a.inChanges.minus(a.changesBefore)
	return free, free.own() + min(changes.own(), free.usual(changes.long))
}

// usual is how much a process uses of its own in some time, if it does as meanwhile.
func (u tracedUse) usual(long time.Duration) float64 {
	return u.own() / float64(max(u.long, 1)) * float64(long)
}

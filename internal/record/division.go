package record

import (
	"errors"
	"os"
	"slices"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A division divides the sites of a recording in windows. The probes of cold ones, which are hardly
// hit, stand between windows too, so that few go in and come out with each window. A site is cold
// when its probe has stood for a moment and was hardly hit, and is hot from when it is hit often.
type division struct {
	session  *attach.Session
	process  *target.Process
	exe      *os.File
	plan     *plan.Plan
	schedule *overhead.Scheduler
	usage    *usage

	groups []*coldGroup
	next   int   // sites from here on have not been tried
	again  []int // sites that are to be tried again: others of their group were hot

	hits []uint64     // not reported, by site, when cold sites were last looked at
	used target.Times // by the process, then
}

// A coldGroup is sites whose probes stand between windows.
type coldGroup struct {
	sites []int
	cold  *attach.Cold
}

// groupSize is how many sites are tried together: as many as go in within a few milliseconds while
// some of them are hit all the time.
const groupSize = 400

// A group is tried until the process has used tryTime of CPU time, or has hit enough of its sites
// to be held up, or for longestTry if it sleeps.
const (
	tryTime    = 8 * time.Millisecond
	longestTry = 50 * time.Millisecond
	tryHits    = 1000
)

// fewSites go in and come out in a moment, be they hot or not.
const fewSites = 100

// isDone reports whether all sites have been tried.
func (d *division) isDone() bool {
	return len(d.plan.Sites) <= fewSites || d.next == len(d.plan.Sites) && len(d.again) == 0
}

// mayOpen reports whether a window may open: those sites that have not been tried are hot then.
func (d *division) mayOpen() bool {
	return d.isDone() || len(d.plan.Sites)-d.next+len(d.again) <= groupSize
}

// keep tries the next group, if the budget allows that, or has cold sites that are hit often become
// hot. No window is open.
func (d *division) keep() error {
	if err := d.heat(); err != nil || d.isDone() || !d.schedule.MayChange() {
		return err
	}
	return d.tryNext()
}

// tryNext puts the probes of the next sites in, and leaves them in if they are hardly hit. Those of
// sites that have been tried, beside others that are hot, stay.
func (d *division) tryNext() error {
	if d.next == len(d.plan.Sites) {
		n := min(groupSize, len(d.again))
		sites := d.again[:n]
		d.again = d.again[n:]
		return d.place(sites)
	}
	defer guard.RaisePriority()() // hot sites are to be found soon
	var sites []int
	for ; d.next < len(d.plan.Sites) && len(sites) < groupSize; d.next++ {
		sites = append(sites, d.next)
	}
	before, err := d.read()
	if err != nil {
		return err
	}
	groups := len(d.groups)
	if err := d.place(sites); err != nil || len(d.groups) == groups {
		return err
	}
	after, err := d.try(before.used)
	if err != nil {
		return err
	}
	hot := d.hot(sites, before, after)
	if len(hot) == 0 {
		return nil
	}
	d.again = append(d.again, without(sites, hot)...)
	return d.remove(d.groups[groups:])
}

// try waits until the process has come to sites that it comes to often. used is what it had used
// before they could be hit.
func (d *division) try(used target.Times) (r reading, err error) {
	metrics, err := d.session.Counters().Metrics()
	if err != nil {
		return r, err
	}
	most := metrics.Unreported + tryHits
	for began := time.Now(); time.Since(began) < longestTry; {
		now, err := d.process.Times()
		if err != nil || now.CPU-used.CPU >= tryTime || d.process.Wait(time.Millisecond) {
			break
		}
		if metrics, err = d.session.Counters().Metrics(); err != nil || metrics.Unreported >= most {
			break
		}
	}
	return d.read()
}

// without is some sites without others, which are in order.
func without(sites, others []int) (left []int) {
	for _, site := range sites {
		if _, found := slices.BinarySearch(others, site); !found {
			left = append(left, site)
		}
	}
	return left
}

// heat takes those cold sites out that have been hit often since the last time.
func (d *division) heat() error {
	const enough = 20 * time.Millisecond // of CPU time: the clock of some kernels ticks every 4 ms
	last := reading{d.hits, d.used}
	if used, err := d.usage.used(); err != nil || used.CPU-last.used.CPU < enough {
		return err
	}
	now, err := d.read()
	if err != nil {
		return err
	}
	if d.hits, d.used = now.hits, now.used; last.hits == nil {
		return nil
	}
	var sites []int
	for _, g := range d.groups {
		sites = append(sites, g.sites...)
	}
	hot := d.hot(sites, last, now)
	var affected []*coldGroup
	var left []int
	for _, g := range d.groups {
		if rest := without(g.sites, hot); len(rest) < len(g.sites) {
			affected, left = append(affected, g), append(left, rest...)
		}
	}
	if err := d.remove(affected); err != nil {
		return err
	}
	slices.Sort(left)
	return d.place(left)
}

// A reading is the hits so far that were not reported, by site, and what the process has used.
type reading struct {
	hits []uint64
	used target.Times
}

func (d *division) read() (r reading, err error) {
	if r.used, err = d.usage.used(); err != nil {
		return r, err
	}
	r.hits, err = d.session.Counters().SiteHits(len(d.plan.Sites))
	return r, err
}

// hot lists those of some sites that were hit too often between two readings.
func (d *division) hot(sites []int, before, after reading) []int {
	hits, all := map[int]uint64{}, uint64(0)
	for _, site := range sites {
		n := after.hits[site]
		if site < len(before.hits) {
			n -= before.hits[site]
		}
		if n > 0 {
			hits[site] = n
			all += n
		}
	}
	cost := d.usage.meter.Cost().Emulated
	own := after.used.Sub(before.used).CPU - time.Duration(all)*cost
	most := float64(d.schedule.MostColdHits(own, cost))
	return overhead.HotSites(hits, uint64(most*float64(len(sites))/float64(len(d.plan.Sites))))
}

// place puts the probes of a cold group in, unless another's breakpoints are in the way.
func (d *division) place(sites []int) error {
	if len(sites) == 0 {
		return nil
	}
	held := d.session.Groups().Changes()
	cold, err := d.session.Groups().PlaceCold(d.exe, sites)
	d.schedule.ChargeCold(d.session.Groups().Changes().Since(held))
	if errors.Is(err, attach.ErrBreakpoint) { // which opening a window meets, too
		return nil
	}
	if err == nil {
		d.groups = append(d.groups, &coldGroup{sites, cold})
	}
	return err
}

// remove takes the probes of cold groups out.
func (d *division) remove(groups []*coldGroup) error {
	if len(groups) == 0 {
		return nil
	}
	var list []*attach.Cold
	for _, g := range groups {
		list = append(list, g.cold)
	}
	d.groups = slices.DeleteFunc(slices.Clone(d.groups),
		func(g *coldGroup) bool { return slices.Contains(list, g.cold) })
	held := d.session.Groups().Changes()
	err := d.session.Groups().RemoveCold(list...)
	d.schedule.ChargeCold(d.session.Groups().Changes().Since(held))
	return err
}

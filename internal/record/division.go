package record

import (
	"cmp"
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
// hit, stand between windows too, so that few go in and come out with each window. What is cold is
// known from windows, whose hits are counted by site; of sites beyond those that one window takes,
// from a trial. A cold site is hot from when it is hit often.
type division struct {
	session  *attach.Session
	process  *target.Process
	exe      *os.File
	plan     *plan.Plan
	schedule *overhead.Scheduler
	usage    *usage
	threads  *threads // that count the hits of windows, by site

	groups  []*coldGroup
	untried []int // sites that are to be tried before the first window
	again   []int // sites that are to be put in: others of their group were hot

	last    reading // when cold sites were last looked at
	isFresh bool    // some have become cold since

	sites []siteHeat
	own   time.Duration // of the process in windows, when hot sites were last looked at
}

// A siteHeat is what is known of a site.
type siteHeat struct {
	seen    uint64 // hits that windows had recorded when hot sites were last looked at
	idle    int    // times in a row that there were hardly any
	wasCold bool
}

// A coldGroup is sites whose probes stand between windows.
type coldGroup struct {
	sites []int
	cold  *attach.Cold
}

// trySize is how many sites are tried together: as many as go in within a few milliseconds.
const trySize = 2000

// Cold sites are in groups of leastGroup or, where there are many sites, in mostGroups: where some
// turn hot, the rest of their group is to move.
const (
	leastGroup = 128
	mostGroups = 200
)

// mostHot is how many sites go in with a window at most, and mostLeft how many more whose turn to
// be tried has not come.
const (
	mostHot  = 1500
	mostLeft = 400
)

// A group is tried until the process has used tryTime of CPU time, or has hit enough of its sites
// to be held up, or for longestTry if it sleeps.
const (
	tryTime    = 3 * time.Millisecond
	longestTry = 50 * time.Millisecond
	tryHits    = 1000
)

func newDivision(r *Recorder, schedule *overhead.Scheduler) *division {
	return &division{
		session: r.session, process: r.options.Process, exe: r.exe, plan: r.program.Plan,
		schedule: schedule, usage: r.usage, threads: r.threads,
	}
}

// grow takes in the sites of libraries that have come.
func (d *division) grow() {
	d.sites = append(d.sites, make([]siteHeat, len(d.plan.Sites)-len(d.sites))...)
}

// begin says which sites are to be tried: all but the mostHot that the process is expected to come
// to most often, those of routines with the most samples. samples are by routine.
func (d *division) begin(samples map[int]uint64) {
	if len(d.plan.Sites) <= mostHot {
		return
	}
	list := make([]int, len(d.plan.Sites))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := &d.plan.Sites[a], &d.plan.Sites[b]
		return cmp.Or(cmp.Compare(samples[y.Routine], samples[x.Routine]),
			cmp.Compare(y.Expected, x.Expected))
	})
	d.untried = list[mostHot:]
	slices.Reverse(d.untried) // those that are least likely to be hot stand when the others go in
}

// isDone reports whether all sites have been divided.
func (d *division) isDone() bool { return len(d.untried) == 0 && len(d.again) == 0 }

// mayOpen reports whether a window may open: sites that have not been tried are hot then.
func (d *division) mayOpen() bool { return len(d.untried)+len(d.again) <= mostLeft }

// isSettled reports whether all sites have been divided, and those that have turned out to be cold
// have stood for a moment.
func (d *division) isSettled() bool { return d.isDone() && !d.isFresh }

// settle has cold sites that are hit often become hot, and tries the next group.
func (d *division) settle() error {
	if err := d.heat(); err != nil || d.isDone() {
		return err
	}
	return d.next()
}

// keep is settle, but that groups are tried as the budget allows. No window is open.
func (d *division) keep() error {
	if !d.schedule.MayChange() {
		return d.heat()
	}
	return d.settle()
}

// next puts the probes of the next sites in, and leaves them in if they are hardly hit. When all
// have been tried, those go in again that had been in a group with some that are hot.
func (d *division) next() error {
	if len(d.untried) == 0 {
		sites := d.again
		d.again = nil
		return d.place(sites)
	}
	defer guard.RaisePriority()() // hot sites are to be found soon
	sites := slices.Clone(d.untried[:min(trySize, len(d.untried))])
	slices.Sort(sites)
	d.untried = d.untried[len(sites):]
	before, err := d.read()
	if err != nil {
		return err
	}
	if err := d.place(sites); err != nil {
		return err
	}
	after, err := d.try(before.used)
	if err != nil {
		return err
	}
	left, err := d.takeOut(before, after)
	d.again = append(d.again, left...)
	return err
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
	// of CPU time: the clock of some kernels ticks every 4 ms
	const enough, enoughOfFresh = 20 * time.Millisecond, 5 * time.Millisecond
	used, err := d.usage.used()
	ran := used.CPU - d.last.used.CPU
	if err != nil || ran < enoughOfFresh || ran < enough && !d.isFresh {
		return err
	}
	now, err := d.read()
	if err != nil {
		return err
	}
	if d.last.hits == nil {
		d.last = now
		return nil
	}
	left, err := d.takeOut(d.last, now)
	if err != nil || left == nil && ran < enough {
		return err
	}
	if d.last, d.isFresh = now, false; left == nil {
		return nil
	}
	return d.place(left)
}

// takeOut takes out the cold groups of sites that were hit too often between two readings. left are
// the other sites of these groups, in order; nil: there are no such groups.
func (d *division) takeOut(before, after reading) (left []int, err error) {
	hot := d.hot(d.cold(), before, after)
	var affected []*coldGroup
	for _, g := range d.groups {
		if rest := without(g.sites, hot); len(rest) < len(g.sites) {
			affected, left = append(affected, g), append(left, rest...)
		}
	}
	slices.Sort(left)
	return left, d.remove(affected)
}

// cold lists the cold sites.
func (d *division) cold() (sites []int) {
	for _, g := range d.groups {
		sites = append(sites, g.sites...)
	}
	return sites
}

// cool puts those hot sites in that windows have hardly come to, as cold ones: at once those that
// never were, others when they have been so for some time, for they were hit often once. A window
// has ended, and own is the least of the process's own time that windows may have been.
func (d *division) cool(own time.Duration) error {
	const (
		enoughHits = 2000
		enough     = 8 * time.Millisecond // of its own time
		manyTimes  = 8
		few        = 16 // are not worth a change
	)
	d.grow()
	hits, all := map[int]uint64{}, uint64(0)
	for site, n := range d.threads.recorded {
		if n -= d.sites[site].seen; n > 0 {
			hits[site] = n
			all += n
		}
	}
	ran := max(own-d.own, 0)
	if all < enoughHits && ran < enough {
		return nil
	}
	d.own = own
	for site, n := range d.threads.recorded {
		d.sites[site].seen = n
	}
	for _, site := range d.hotOf(hits, len(d.sites), ran) {
		d.sites[site].idle = -1
	}
	cold := d.cold()
	slices.Sort(cold)
	var cooled []int
	for i := range d.sites {
		site := &d.sites[i]
		site.idle++
		_, isCold := slices.BinarySearch(cold, i)
		if !isCold && site.idle > 0 && (!site.wasCold || site.idle >= manyTimes) {
			cooled = append(cooled, i)
		}
	}
	if len(cooled) < few {
		return nil
	}
	return d.place(cooled)
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
	own := after.used.Sub(before.used).CPU - time.Duration(all)*d.usage.meter.Cost().Emulated
	return d.hotOf(hits, len(sites), own)
}

// hotOf lists those of so many sites that were hit too often while the process has used some CPU
// time of its own, in order. hits are those meanwhile.
func (d *division) hotOf(hits map[int]uint64, sites int, own time.Duration) []int {
	most := float64(d.schedule.MostColdHits(own, d.usage.meter.Cost().Emulated))
	return overhead.HotSites(hits, uint64(most*float64(sites)/float64(len(d.plan.Sites))))
}

// pause is how soon it is to be looked again whether cold sites are hit.
func (d *division) pause() time.Duration {
	const usual, ofFresh = time.Second, 5 * time.Millisecond
	if d.isFresh {
		return ofFresh
	}
	return usual
}

// place puts the probes of cold sites in, in groups, unless another's breakpoints are in the way.
func (d *division) place(sites []int) error {
	if len(sites) == 0 {
		return nil
	}
	held := d.session.Groups().Changes()
	size := max(leastGroup, len(d.plan.Sites)/mostGroups)
	groups := slices.Collect(slices.Chunk(sites, size))
	cold, err := d.session.Groups().PlaceCold(d.exe, groups...)
	d.schedule.ChargeCold(d.session.Groups().Changes().Since(held))
	if errors.Is(err, attach.ErrBreakpoint) { // which opening a window meets, too
		return nil
	}
	if err != nil {
		return err
	}
	for i, group := range groups {
		d.groups = append(d.groups, &coldGroup{group, cold[i]})
	}
	d.grow()
	for _, site := range sites {
		d.sites[site].wasCold = true
	}
	d.isFresh = true
	d.last, err = d.read()
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

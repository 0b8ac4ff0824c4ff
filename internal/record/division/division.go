package division

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A Division is that of the sites of a session's plan. One goroutine uses it at a time, that of the
// session.
type Division struct {
	session  *attach.Session
	process  *target.Process
	exe      *os.File
	plan     *plan.Plan
	schedule *overhead.Scheduler
	usage    Usage

	groups  []*coldGroup
	untried []int // sites that are to be tried before the first window
	again   []int // sites that are to be put in: others of their group were hot

	last    reading // when cold sites were last looked at, or became cold
	isFresh bool    // some have become cold lately
	looked  bool    // it has been looked at them since
	placed  time.Time

	sites []siteHeat
	own   time.Duration // of the process in windows, when hot sites were last looked at
}

// A Usage is what the process uses.
type Usage interface {
	// Used is what it has used so far.
	Used() (target.Times, error)
	// HitCost is what a hit costs it.
	HitCost() time.Duration
	// Recorded is how many hits windows have recorded so far, by site; there may be none of the
	// last sites. It is the caller's.
	Recorded() []uint64
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
const trySize = 400

// Cold sites are in groups of leastGroup or, where there are many sites, in mostGroups: where some
// turn hot, the rest of their group is to move.
const (
	leastGroup = 64
	mostGroups = 200
)

// mostHot is how many sites go in with a window at most, and mostLeft how many more whose turn to
// be tried has not come.
const (
	mostHot  = 400
	mostLeft = 200
)

// A group is tried until the process has used tryTime of CPU time, or has hit enough of its sites
// to be held up, or for longestTry if it sleeps.
const (
	tryTime    = 3 * time.Millisecond
	longestTry = 50 * time.Millisecond
	tryHits    = 1000
)

// New returns a division in which all sites are hot. exe is as of attach.Session.Attach; the plan
// may grow. What goes in and comes out between windows is charged to the schedule.
func New(s *attach.Session, p *target.Process, exe *os.File, pl *plan.Plan,
	schedule *overhead.Scheduler, u Usage) *Division {
	return &Division{session: s, process: p, exe: exe, plan: pl, schedule: schedule, usage: u}
}

// grow takes in the sites of libraries that have come.
func (d *Division) grow() {
	d.sites = append(d.sites, make([]siteHeat, len(d.plan.Sites)-len(d.sites))...)
}

// Begin says which sites are to be tried: all but the mostHot that the process is expected to come
// to most often, those of routines with the most samples. samples are by routine.
func (d *Division) Begin(samples map[int]uint64) {
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

// IsDone reports whether all sites have been divided.
func (d *Division) IsDone() bool { return len(d.untried) == 0 && len(d.again) == 0 }

// MayOpen reports whether a window may open: sites that have not been tried are hot then.
func (d *Division) MayOpen() bool { return len(d.untried)+len(d.again) <= mostLeft }

// IsSettled reports whether all sites have been divided, and those that have turned out to be cold
// have stood for a moment.
func (d *Division) IsSettled() bool { return d.IsDone() && !d.isWatched() }

// isWatched reports whether it is soon to be known of some sites that have become cold lately
// whether they are. Of a process that sleeps it is not.
func (d *Division) isWatched() bool {
	const asleep = 100 * time.Millisecond
	return d.isFresh && time.Since(d.placed) < asleep
}

// Settle has cold sites that are hit often become hot, and tries the next group.
func (d *Division) Settle() error {
	if err := d.heat(); err != nil || d.IsDone() {
		return err
	}
	return d.next()
}

// Keep is Settle, but that groups are tried as the budget allows. No window is open.
func (d *Division) Keep() error {
	if !d.schedule.MayChange() {
		return d.heat()
	}
	return d.Settle()
}

// next puts the probes of the next sites in, and leaves them in if they are hardly hit. When all
// have been tried, those go in again that had been in a group with some that are hot.
func (d *Division) next() error {
	if len(d.untried) == 0 {
		if d.isWatched() && !d.looked { // hot ones are not to gather
			return nil
		}
		sites := take(&d.again)
		_, err := d.place(sites)
		return err
	}
	sites := take(&d.untried)
	before, err := d.read()
	if err != nil {
		return err
	}
	if placed, err := d.place(sites); err != nil || !placed {
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

// take takes the next of some sites, in order.
func take(list *[]int) (sites []int) {
	sites = slices.Clone((*list)[:min(trySize, len(*list))])
	slices.Sort(sites)
	*list = (*list)[len(sites):]
	return sites
}

// try waits until the process has come to sites that it comes to often. used is what it had used
// before they could be hit.
func (d *Division) try(used target.Times) (r reading, err error) {
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
func (d *Division) heat() error {
	// of CPU time: the clock of some kernels ticks every 4 ms
	const enough, enoughOfFresh = 20 * time.Millisecond, 5 * time.Millisecond
	used, err := d.usage.Used()
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
	d.looked = true
	left, err := d.takeOut(d.last, now)
	if err != nil || left == nil && ran < enough {
		return err
	}
	if d.last, d.isFresh = now, false; left == nil {
		return nil
	}
	_, err = d.place(left)
	return err
}

// takeOut takes out the cold groups of sites that were hit too often between two readings. left are
// the other sites of these groups, in order; nil: there are no such groups.
func (d *Division) takeOut(before, after reading) (left []int, err error) {
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
func (d *Division) cold() (sites []int) {
	for _, g := range d.groups {
		sites = append(sites, g.sites...)
	}
	return sites
}

// Cool puts those hot sites in that windows have hardly come to, as cold ones: at once those that
// never were, others when they have been so for some time, for they were hit often once. A window
// has ended, and own is the least of the process's own time that windows may have been.
func (d *Division) Cool(own time.Duration) error {
	_, err := d.place(d.cooled(own))
	return err
}

// cooled lists the sites that turn cold, in order.
func (d *Division) cooled(own time.Duration) (sites []int) {
	const (
		enoughHits = 1000
		enough     = 8 * time.Millisecond // of its own time
		manyTimes  = 8
		few        = 16 // are not worth a change
	)
	d.grow()
	hits, all := map[int]uint64{}, uint64(0)
	for site, n := range d.usage.Recorded() {
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
	for site, n := range d.usage.Recorded() {
		d.sites[site].seen = n
	}
	for _, site := range d.hotOf(hits, len(d.sites), ran) {
		d.sites[site].idle = -1
	}
	cold := slices.Concat(d.cold(), d.untried, d.again) // or about to be
	slices.Sort(cold)
	for i := range d.sites {
		site := &d.sites[i]
		site.idle++
		_, isCold := slices.BinarySearch(cold, i)
		if !isCold && site.idle > 0 && (!site.wasCold || site.idle >= manyTimes) {
			sites = append(sites, i)
		}
	}
	if len(sites) < few {
		return nil
	}
	return sites
}

// A reading is the hits so far that were not reported, by site, and what the process has used.
type reading struct {
	hits []uint64
	used target.Times
}

func (d *Division) read() (r reading, err error) {
	if r.used, err = d.usage.Used(); err != nil {
		return r, err
	}
	r.hits, err = d.session.Counters().SiteHits(len(d.plan.Sites))
	return r, err
}

// hot lists those of some sites that were hit too often between two readings.
func (d *Division) hot(sites []int, before, after reading) []int {
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
	own := after.used.Sub(before.used).CPU - time.Duration(all)*d.usage.HitCost()
	return d.hotOf(hits, len(sites), own)
}

// hotOf lists those of so many sites that were hit too often while the process has used some CPU
// time of its own, in order. hits are those meanwhile.
func (d *Division) hotOf(hits map[int]uint64, sites int, own time.Duration) []int {
	most := float64(d.schedule.MostColdHits(own, d.usage.HitCost()))
	return hottest(hits, uint64(most*float64(sites)/float64(len(d.plan.Sites))))
}

// Pause is how soon it is to be looked again whether cold sites are hit.
func (d *Division) Pause() time.Duration {
	const usual, ofFresh = time.Second, 5 * time.Millisecond
	if d.isWatched() {
		return ofFresh
	}
	return usual
}

// place puts the probes of cold sites in, which ascend, in groups. Where another's breakpoints are
// in the way, they stay hot.
func (d *Division) place(sites []int) (placed bool, err error) {
	if len(sites) == 0 {
		return false, nil
	}
	held := d.session.Groups().Changes()
	size := max(leastGroup, len(d.plan.Sites)/mostGroups)
	groups := slices.Collect(slices.Chunk(sites, size))
	cold, err := d.session.Groups().PlaceCold(d.exe, groups...)
	d.schedule.ChargeCold(d.session.Groups().Changes().Since(held))
	if errors.Is(err, attach.ErrBreakpoint) { // which opening a window meets, too
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i, group := range groups {
		d.groups = append(d.groups, &coldGroup{group, cold[i]})
	}
	d.grow()
	for _, site := range sites {
		d.sites[site].wasCold = true
	}
	d.isFresh, d.looked, d.placed = true, false, time.Now()
	d.last, err = d.read()
	return true, err
}

// remove takes the probes of cold groups out.
func (d *Division) remove(groups []*coldGroup) error {
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

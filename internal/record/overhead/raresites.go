package main

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/govern"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A rating tells how much of the process's own time windows are, be nearly all of them spent on
// hits: some sites that are seldom come to are counted between windows too, where no other probes
// stand, and the process comes to them there as often as it would have in windows. What is chosen
// by is not what is told by: a site is chosen when chance has brought it up.
type rating struct {
	within []uint64 // by site of the executable: hits that windows have recorded
	all    uint64   // hits that they have recorded of all sites of the executable
	share  float64  // of all: what makes more of them is not counted
	sites  []int    // that are counted between windows, in order; nil: none have been chosen
	dear   bool     // they are come to too often
	spent  time.Duration
	before rated // what the sites that were chosen before have told

	// Since they were chosen.
	chosenAt uint64 // what windows had recorded of them then
	allAt    uint64 // and of all
	last     uint64 // recorded of them up to the last window
	bursts   int    // windows that have recorded any
	times    int    // that they have been counted
	hits     uint64 // then
	own      time.Duration
	cost     time.Duration // of the hits, by calibration
}

// A rated is what is known by counting: the process's own time in windows for each hit of them, and
// how far off that may be, relative to it. 0: nothing is known.
type rated struct{ ownByHit, doubt float64 }

const (
	ratingTime  = 50 * time.Millisecond
	firstRating = 20 * time.Millisecond // of sites that may be too dear
	ratingShare = 0.1                   // of the cost of hits: what counting may cost
	dearRating  = 0.5                   // of the CPU time while they are counted: sites that cost more are too dear

	leastOfSite  = 20      // hits: with fewer, a site is not known to be rare
	leastTold    = 5       // hits: by fewer, nothing is told
	leastOfSites = 200     // of all that are counted together, if there are as many that are seldom come to
	manyHits     = 200_000 // of all: what has not come up then is not waited for
	firstShare   = 0.001   // of all hits, what is counted at first
	lessShare    = 0.125   // of that, where it is too dear
	idleTimes    = 5       // sites that do not come once a count in as many come no more

	windowDoubt = 0.1                  // what windows do may differ from what is done between them,
	countDoubt  = 0.2                  // and that from one time to another
	clockDoubt  = 2 * time.Millisecond // a process's CPU time is told by the clock tick, while it runs
	littleDoubt = 0.15                 // with no more, counting tells nothing new
)

func newRating(p *plan.Plan) *rating {
	return &rating{within: make([]uint64, len(p.Parts[0].Sites)), share: firstShare}
}

// ratingOf is the rating of a pace, nil if there is none.
func ratingOf(p *pace) *rating {
	if p == nil {
		return nil
	}
	return p.rating
}

// count notes n hits of a site that a window has recorded.
func (r *rating) count(site int, n uint64) {
	if r != nil && site < len(r.within) {
		r.within[site] += n
		r.all += n
	}
}

// recorded is how many hits of the sites windows have recorded.
func (r *rating) recorded() (hits uint64) {
	for _, site := range r.sites {
		hits += r.within[site]
	}
	return hits
}

// endWindow notes whether a window has come to the sites.
func (r *rating) endWindow() {
	if now := r.recorded(); now > r.last {
		r.last = now
		r.bursts++
	}
}

// due reports whether the sites are to be counted, now that hits have cost so much in all.
func (r *rating) due(hits time.Duration) bool {
	by := r.rated()
	known := by.ownByHit > 0 && by.doubt <= littleDoubt
	return !known && float64(r.spent) <= ratingShare*float64(hits)
}

// choose chooses the sites: those that windows have come to least, but not so seldom that it is
// chance. It reports false as long as too little is known.
func (r *rating) choose(sites []plan.Site) bool {
	idle := r.times >= idleTimes && r.hits < uint64(r.times)
	if r.sites != nil && !r.dear && !idle {
		return true
	}
	if idle {
		for _, site := range r.sites { // they are to come up anew
			r.within[site] = 0
		}
		*r = rating{within: r.within, all: r.all, share: r.share, spent: r.spent, before: r.before}
	}
	list := r.rarest(sites)
	r.dear = false
	if len(list) > 0 && !slices.Equal(list, r.sites) {
		r.before = r.rated()
		r.sites, r.times, r.bursts, r.hits, r.own, r.cost = list, 0, 0, 0, 0, 0
		r.last = r.recorded()
		r.chosenAt, r.allAt = r.last, r.all
	}
	return len(list) > 0
}

// rarest lists the sites to choose, in order; none if too little is known.
func (r *rating) rarest(sites []plan.Site) (list []int) {
	for site, n := range r.within {
		if n >= leastOfSite && !sites[site].Stepped {
			list = append(list, site)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(r.within[a], r.within[b]) })
	n, total := 0, uint64(0)
	for n < len(list) && total < leastOfSites && float64(total+r.within[list[n]]) <= r.share*float64(r.all) {
		total += r.within[list[n]]
		n++
	}
	if n == 0 && len(list) > 0 && r.all >= manyHits {
		n = 1
	}
	list = list[:n]
	slices.Sort(list)
	return list
}

// time is how long sites are counted.
func (r *rating) time() time.Duration {
	if r.times == 0 {
		return firstRating
	}
	return ratingTime
}

// add notes what came of counting: so many hits, which have cost so much of the CPU time that the
// process used, and what putting the probes in and out has.
func (r *rating) add(hits uint64, used, cost, change time.Duration) {
	r.times++
	r.hits += hits
	r.own += max(used-cost, 0)
	r.cost += cost
	r.spent += cost + change
	if r.dear = float64(cost) > dearRating*float64(used); r.dear {
		r.share *= lessShare
	}
}

// estimate tells how much of the CPU time in windows was the process's own; false: that is not
// known.
func (r *rating) estimate(cpu time.Duration) (e estimate, known bool) {
	if r == nil {
		return estimate{}, false
	}
	by := r.rated()
	own := by.ownByHit * float64(r.all)
	return estimate{cpu: float64(cpu), own: min(own, float64(cpu)), doubt: by.doubt * own}, own > 0
}

// rated is what the sites tell, or if they tell nothing yet, those before.
func (r *rating) rated() rated {
	within := r.recorded() - r.chosenAt
	if within < leastTold || r.bursts == 0 || r.hits < leastTold || r.own == 0 {
		return r.before
	}
	ownByHit := float64(within) * float64(r.own) / float64(r.hits) / float64(r.all-r.allAt)
	cost, clock, times := hitDoubt*float64(r.cost)/float64(r.own), float64(clockDoubt)/float64(r.own), float64(r.times)
	doubt := math.Sqrt(1/float64(r.bursts) + 1/float64(r.hits) + cost*cost + times*clock*clock + countDoubt*countDoubt/times + windowDoubt*windowDoubt)
	return rated{ownByHit, doubt}
}

// rateWindows counts rare sites for a while after a window, where that is needed, and worth its
// cost.
func (r *recording) rateWindows() error {
	p, sites := r.pace, r.program.plan.Parts[0].Sites
	if p.rating == nil {
		return nil
	}
	p.rating.endWindow()
	if !p.mostlyHits() || !p.rating.due(p.all.hits.cost) || !p.rating.choose(sites) || r.session.Unguarded() {
		return nil
	}
	list := make([]plan.Site, len(p.rating.sites))
	for i, site := range p.rating.sites {
		list[i] = sites[site]
	}
	var before, after target.Times
	hits, err := r.session.Count(list, func() (err error) {
		if before, err = r.used(); err != nil {
			return err
		}
		r.process.Wait(p.rating.time())
		after, err = r.used()
		return err
	})
	if errors.Is(err, attach.ErrBreakpoint) { // another's, which will be gone the next time
		return nil
	}
	if err != nil {
		return err
	}
	r.account()
	change := 2 * mostWait * time.Duration(len(list))
	p.budget.Account(govern.Use{Probes: change})
	p.turn()
	used, cost := after.Sub(before).CPU, time.Duration(hits)*r.gauge.unreported()
	r.log.Debug("rare sites were counted between windows", "sites", len(list), "recorded", p.rating.recorded(), "hits", hits, "used", used, "for hits", cost)
	p.rating.add(hits, used, cost, change)
	return nil
}

package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A rating tells how much of the process's own time windows are, be nearly all of them spent on hits: some sites that are seldom come to are counted between windows
// too, where no other probes stand, and the process comes to them there as often as it would have in windows.
type rating struct {
	within []uint64 // by site of the executable: hits that windows have recorded
	all    uint64   // of all sites of the executable
	sites  []int    // that are counted between windows; nil: none have been chosen
	times  int      // that they have been
	hits   uint64   // of those there
	own    time.Duration
	cost   time.Duration // of the hits there, by calibration
	spent  time.Duration // likewise, of these sites and of those chosen before
	share  float64       // of all hits in windows: what makes more of them is not counted
	dear   bool          // they are come to too often
}

const (
	ratingTime  = 50 * time.Millisecond
	firstRating = 20 * time.Millisecond // of sites that may be too dear
	ratingShare = 0.1                   // of the cost of hits: what counting may cost
	dearRating  = 0.25                  // of the CPU time while they are counted: sites that cost more are too dear

	leastOfSite  = 20                   // hits in windows: of fewer, little can be told
	leastOfSites = 200                  // of all that are counted together, if there are as many that are seldom come to
	manyHits     = 200_000              // of all: what has not come up then is not waited for
	firstShare   = 0.001                // of all hits, what is counted at first
	lessShare    = 0.125                // of that, where it is too dear
	ratingDoubt  = 0.1                  // what windows do may differ from what is done between them
	clockDoubt   = 2 * time.Millisecond // a process's CPU time is told by the clock tick, while it runs
)

func newRating(p *plan.Plan) *rating {
	return &rating{within: make([]uint64, len(p.Parts[0].Sites)), share: firstShare}
}

// rates is the rating of the windows, nil if there is none.
func (p *pace) rates() *rating {
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

// due reports whether the sites are to be counted, now that hits have cost so much in all.
func (r *rating) due(hits time.Duration) bool {
	return r != nil && float64(r.spent) <= ratingShare*float64(hits)
}

// choose chooses the sites: those that windows have come to least, but not so seldom that it is chance. It reports false as long as too little is known.
func (r *rating) choose(sites []plan.Site) bool {
	if r.sites != nil && !r.dear {
		return true
	}
	var list []int
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
	switch {
	case n > 0:
	case len(list) > 0 && r.all >= manyHits:
		n = 1
	default:
		return false
	}
	r.sites, r.times, r.hits, r.own, r.cost, r.dear = list[:n], 0, 0, 0, 0, false
	return true
}

// time is how long sites are counted.
func (r *rating) time() time.Duration {
	if r.times == 0 {
		return firstRating
	}
	return ratingTime
}

// add notes what came of counting: so many hits, which have cost so much of the CPU time that the process used.
func (r *rating) add(hits uint64, used, cost time.Duration) {
	r.times++
	r.hits += hits
	r.own += max(used-cost, 0)
	r.cost += cost
	r.spent += cost
	if r.dear = float64(cost) > dearRating*float64(used); r.dear {
		r.share *= lessShare
	}
}

// estimate tells how much of the CPU time in windows was the process's own; false: that is not known.
func (r *rating) estimate(cpu time.Duration) (e estimate, ok bool) {
	if r == nil || r.hits < leastOfSite || r.own == 0 {
		return estimate{}, false
	}
	within := r.recorded()
	own := float64(within) * float64(r.own) / float64(r.hits)
	cost, clock := hitDoubt*float64(r.cost)/float64(r.own), float64(clockDoubt)/float64(r.own)
	doubt := own * math.Sqrt(1/float64(within)+1/float64(r.hits)+cost*cost+float64(r.times)*clock*clock+ratingDoubt*ratingDoubt)
	return estimate{cpu: float64(cpu), own: min(own, float64(cpu)), doubt: doubt}, true
}

// recorded is how many hits of the sites windows have recorded.
func (r *rating) recorded() (hits uint64) {
	for _, site := range r.sites {
		hits += r.within[site]
	}
	return hits
}

// rate counts sites for a while, where that is needed, and worth its cost.
func (r *recording) rate() error {
	p := r.pace
	sites := r.program.plan.Parts[0].Sites
	if !p.mostlyHits() || !p.rating.due(p.all.hits) || !p.rating.choose(sites) {
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
	if err != nil {
		return err
	}
	r.account()
	p.turn()
	used, cost := after.Sub(before).CPU, time.Duration(hits)*r.gauge.unreported()
	r.log.Debug("hits between windows were counted", "sites", len(list), "recorded", p.rating.recorded(), "hits", hits, "used", used, "for hits", cost)
	p.rating.add(hits, used, cost)
	return nil
}

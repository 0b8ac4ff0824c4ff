package overhead

import (
	"cmp"
	"math"
	"slices"
	"time"

	"wpptrace/loader/plan"
)

// RareSites say how much of the process's own time windows are, where windows are nearly all spent
// on hits, so that what hits leave says little: some rare sites are counted between windows too,
// where no other probes stand, and the process comes to them there at its normal rate. They are
// chosen by one sample and counted in another, for a site is chosen when chance has brought it up.
// One goroutine uses them at a time; nil counts nothing.
type RareSites struct {
	within []uint64 // by site of the executable: hits that windows have recorded
	all    uint64   // hits that they have recorded of all sites of the executable
	share  float64  // of all: what makes more of them is not counted
	sites  []int    // that are counted between windows, in order; nil: none have been chosen
	costly bool     // they are come to too often
	spent  time.Duration
	before ownTime // by the sites that were chosen before

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

// An ownTime is what is known by counting: the process's own time in windows for each of their
// hits, in ns, and how far off that may be, relative to it. 0: nothing is known.
type ownTime struct{ byHit, doubt float64 }

const (
	countTime  = 50 * time.Millisecond
	firstCount = 20 * time.Millisecond // of sites that may be too costly
	countShare = 0.1                   // of the cost of hits: what counting may cost
	// of the CPU time while they are counted: sites that cost more are too costly
	costlyShare = 0.5

	leastOfSite  = 20 // hits: with fewer, a site is not known to be rare
	leastCounted = 5  // hits: by fewer, nothing is known
	// of all that are counted together, if there are as many that are seldom come to
	leastOfSites = 200
	manyHits     = 200_000 // of all: what has not come up then is not waited for
	firstShare   = 0.001   // of all hits, what is counted at first
	lessShare    = 0.125   // of that, where it is too costly
	idleTimes    = 5       // sites that do not come once a count in as many come no more

	windowDoubt = 0.1 // what windows do may differ from what is done between them,
	countDoubt  = 0.2 // and that from one time to another
	// a process's CPU time is known by the clock tick, while it runs
	clockDoubt  = 2 * time.Millisecond
	littleDoubt = 0.15 // with no more, counting adds nothing
)

// NewRareSites chooses among the sites of the plan's executable.
func NewRareSites(p *plan.Plan) *RareSites {
	return &RareSites{within: make([]uint64, len(p.Parts[0].Sites)), share: firstShare}
}

// Count notes n hits of a site that a window has recorded.
func (r *RareSites) Count(site int, n uint64) {
	if r != nil && site < len(r.within) {
		r.within[site] += n
		r.all += n
	}
}

// recorded is how many hits of the sites windows have recorded.
func (r *RareSites) recorded() (hits uint64) {
	for _, site := range r.sites {
		hits += r.within[site]
	}
	return hits
}

// endWindow notes whether a window has come to the sites.
func (r *RareSites) endWindow() {
	if now := r.recorded(); now > r.last {
		r.last = now
		r.bursts++
	}
}

// due reports whether the sites are to be counted, now that hits have cost so much in all.
func (r *RareSites) due(hits time.Duration) bool {
	by := r.ownTime()
	known := by.byHit > 0 && by.doubt <= littleDoubt
	return !known && float64(r.spent) <= countShare*float64(hits)
}

// choose chooses the sites: those that windows have come to least, but not so seldom that it is
// chance. It reports false as long as too little is known.
func (r *RareSites) choose(sites []plan.Site) bool {
	idle := r.times >= idleTimes && r.hits < uint64(r.times)
	if r.sites != nil && !r.costly && !idle {
		return true
	}
	if idle {
		for _, site := range r.sites { // they are to come up anew
			r.within[site] = 0
		}
		*r = RareSites{within: r.within, all: r.all, share: r.share, spent: r.spent,
			before: r.before}
	}
	list := r.rarest(sites)
	r.costly = false
	if len(list) > 0 && !slices.Equal(list, r.sites) {
		r.before = r.ownTime()
		r.sites, r.times, r.bursts, r.hits, r.own, r.cost = list, 0, 0, 0, 0, 0
		r.last = r.recorded()
		r.chosenAt, r.allAt = r.last, r.all
	}
	return len(list) > 0
}

// rarest lists the sites to choose, in order; none if too little is known.
func (r *RareSites) rarest(sites []plan.Site) (list []int) {
	for site, n := range r.within {
		if n >= leastOfSite && !sites[site].Stepped {
			list = append(list, site)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(r.within[a], r.within[b]) })
	n, total := 0, uint64(0)
	for n < len(list) && total < leastOfSites &&
		float64(total+r.within[list[n]]) <= r.share*float64(r.all) {
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

// Time is how long sites are counted.
func (r *RareSites) Time() time.Duration {
	if r.times == 0 {
		return firstCount
	}
	return countTime
}

// add notes what came of counting: so many hits, which have cost so much of the CPU time that the
// process used, and what putting the probes in and out has.
func (r *RareSites) add(hits uint64, used, cost, change time.Duration) {
	r.times++
	r.hits += hits
	r.own += max(used-cost, 0)
	r.cost += cost
	r.spent += cost + change
	if r.costly = float64(cost) > costlyShare*float64(used); r.costly {
		r.share *= lessShare
	}
}

// estimate is how much of the CPU time in windows was the process's own; false: that is not known.
func (r *RareSites) estimate(cpu time.Duration) (e Estimate, known bool) {
	if r == nil {
		return Estimate{}, false
	}
	by := r.ownTime()
	own := by.byHit * float64(r.all)
	return Estimate{cpu: float64(cpu), own: min(own, float64(cpu)), doubt: by.doubt * own}, own > 0
}

// ownTime is what is known by the sites, or if too little is yet, by those before.
func (r *RareSites) ownTime() ownTime {
	within := r.recorded() - r.chosenAt
	if within < leastCounted || r.bursts == 0 || r.hits < leastCounted || r.own == 0 {
		return r.before
	}
	byHit := float64(within) * float64(r.own) / float64(r.hits) / float64(r.all-r.allAt)
	cost, clock, times := hitDoubt*float64(r.cost)/float64(r.own),
		float64(clockDoubt)/float64(r.own), float64(r.times)
	doubt := math.Sqrt(1/float64(r.bursts) + 1/float64(r.hits) + cost*cost + times*clock*clock +
		countDoubt*countDoubt/times + windowDoubt*windowDoubt)
	return ownTime{byHit, doubt}
}

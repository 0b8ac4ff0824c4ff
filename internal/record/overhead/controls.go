package overhead

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"wpptrace/compress/wpp/counted"
	"wpptrace/loader/plan"
	"wpptrace/query/cluster"
)

// Controls are sites whose hits are counted between windows too, in slots of time in which the
// process runs at nearly its normal rate: one of each of the routines that are hit most. What
// windows have recorded of the same sites says how much of the whole run windows are, where nearly
// all of them is spent on hits, so that what hits leave says little. One goroutine uses them at a
// time; nil counts nothing.
type Controls struct {
	plan   *plan.Plan
	within []uint64 // by site of the executable: hits that windows have recorded
	all    uint64   // hits that they have recorded of all sites of the executable

	list   []*control // that were chosen
	chosen uint64     // windows that had been closed then
	next   time.Time  // when the next slot is due
	clock  *control   // that is counted in each slot; nil: none yet
	by     map[int]*control
	once   map[int]bool // of sites that it was asked of: see isOnce
	slots  int
	spent  time.Duration // on counting
}

// A control is a site that is counted.
type control struct {
	site  int
	slots []counted.Slot
	hint  float64 // its rate, where counting cost too much for more; 0: none
	tried bool    // it has been in a slot
}

const (
	slotTime = 16 * time.Millisecond
	// at least, and up to twice as much, between two slots: so that they come at no time of their
	// own after a window
	slotPause  = 100 * time.Millisecond
	slotShare  = 0.15                 // of the cost of hits: what counting may cost,
	firstSpent = 5 * time.Millisecond // and what it may cost besides, at first
	// of the CPU time in a slot: what its hits may cost
	costShare = 0.08
	// where the one whose turn it is costs more: of that alone, in a shorter slot
	costliest = 0.5
	dear      = 0.2 // others first: it says less, for it slows the process down
	shortSlot = 4 * time.Millisecond
	// hits for each ns of the program's own time, of all sites: more were never seen
	mostHitRate = 0.2

	// what a hit costs among some sites of a program that does other things, in hits as calibrated,
	// which are of one site all the time: 1.05 to 1.3 were seen in one that computes, 1.3 to 1.9 in
	// one that is mostly in the kernel
	colderHit = 1.35

	mostControls = 128
	mostInSlot   = 24 // sites: each of them goes in and comes out,
	mostUnknown  = 8  // and of these how often they are hit may not be as expected
	leastOfSite  = 10 // hits in windows: with fewer, nothing would follow from counting it,
	// unless it is in the block with which its routine begins: its hits are the calls of that
	leastOfEntry = 1
	mostSlots    = 128 // that are kept of a site: neighbors are put together
)

// NewControls chooses among the sites of the plan's executable.
func NewControls(p *plan.Plan) *Controls {
	n := len(p.Parts[0].Sites)
	return &Controls{plan: p, within: make([]uint64, n), by: map[int]*control{},
		once: map[int]bool{}}
}

// Count notes n hits of a site that a window has recorded.
func (c *Controls) Count(site int, n uint64) {
	if c != nil && site < len(c.within) {
		c.within[site] += n
		c.all += n
	}
}

// halve puts neighbors together.
func halve[T any](list []T, both func(a, b T) T) []T {
	half := list[:0]
	for pair := range slices.Chunk(list, 2) {
		if len(pair) == 1 {
			half = append(half, pair[0])
		} else {
			half = append(half, both(pair[0], pair[1]))
		}
	}
	return half
}

// differentFirst has those sites come last that windows come to as often as to one before, or to a
// control: what runs together is counted by one of it.
func (c *Controls) differentFirst(list []int) []int {
	var different, others []int
	for _, site := range list {
		alike := func(other int) bool { return c.alike(site, other) }
		if slices.ContainsFunc(different, alike) ||
			slices.ContainsFunc(c.list, func(x *control) bool { return alike(x.site) }) {
			others = append(others, site)
		} else {
			different = append(different, site)
		}
	}
	return append(different, others...)
}

// choose chooses a site of each routine that has none yet, those that are hit most first.
func (c *Controls) choose() {
	best := map[int]int{} // by routine
	for _, x := range c.list {
		best[c.plan.Sites[x.site].Routine] = -1
	}
	for site, n := range c.within {
		least, r := uint64(leastOfSite), c.plan.Sites[site].Routine
		if c.plan.Sites[site].Block == c.plan.Routines[r].Entry {
			least = leastOfEntry
		}
		if n < least || c.plan.Sites[site].Stepped {
			continue
		}
		if other, some := best[r]; !some || other >= 0 && c.better(site, other) {
			best[r] = site
		}
	}
	var more []int
	for _, site := range best {
		if site >= 0 {
			more = append(more, site)
		}
	}
	slices.SortFunc(more, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.within[b], c.within[a]), cmp.Compare(a, b))
	})
	more = c.differentFirst(more)
	for _, site := range more[:min(len(more), mostControls-len(c.list))] {
		x := &control{site: site}
		c.list, c.by[site] = append(c.list, x), x
	}
}

// better reports whether a site says more of how often its routine is called than another of it:
// best one that is hit once a call; one that may be hit first is seldom hit more often.
func (c *Controls) better(site, than int) bool {
	grade := func(site int) int {
		switch {
		case c.isOnce(site):
			return 2
		case c.plan.Sites[site].First:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(grade(site), grade(than)),
		cmp.Compare(c.within[site], c.within[than])) > 0
}

// isOnce reports whether a site is hit once whenever its routine is called.
func (c *Controls) isOnce(site int) bool {
	once, known := c.once[site]
	if !known {
		s := &c.plan.Sites[site]
		once = c.plan.Routines[s.Routine].RunsOnce(s.Block)
		c.once[site] = once
	}
	return once
}

// postpone has the next slot begin later.
func (c *Controls) postpone() { c.next = time.Now().Add(slotPause + rand.N(slotPause)) }

// isDue reports whether a slot may begin.
func (c *Controls) isDue(now time.Time) bool { return now.After(c.next) }

// due lists the sites to count in the next slot, in order, and how long that is, now that hits have
// cost so much in all, and each costs so much; none where counting has cost enough.
func (c *Controls) due(hits, hit time.Duration) (sites []int, long time.Duration) {
	if c == nil || float64(c.spent) > slotShare*float64(hits)+float64(firstSpent) {
		return nil, 0
	}
	if site := c.unknown(); site >= 0 {
		return []int{site}, shortSlot
	}
	most := costShare / float64(max(hit, 1)) // hits for each ns
	rate := c.hitRate()
	expect := func(x *control) (expected float64, isNew bool) {
		if len(x.slots) == 0 && x.hint == 0 {
			return rate * float64(c.within[x.site]) / float64(max(c.all, 1)), true
		}
		return x.rate(), false
	}
	list := c.inTurn(most, func(x *control) bool {
		expected, _ := expect(x)
		return expected > dear/costShare*most
	})
	// Slots are in turn for those that fit in together, and for one that does not.
	alone := c.slots%2 == 0
	sites, long = c.fit(list, expect, most, alone)
	if c.isClock(sites) {
		sites, long = c.fit(list, expect, most, !alone)
	}
	slices.Sort(sites)
	return sites, long
}

// fit takes those controls, in their turn, that are expected to have most hits for each ns together
// at most; with alone, the first but the clock that has more, for as long as costs what a slot may.
func (c *Controls) fit(list []*control, expect func(*control) (float64, bool), most float64,
	alone bool) (sites []int, long time.Duration) {
	left, unknown := most, 0
	long = slotTime
	for _, x := range list {
		expected, isNew := expect(x)
		switch {
		case len(sites) == mostInSlot || isNew && unknown == mostUnknown:
			continue
		case expected <= left && (!alone || x == c.clock):
			left -= expected
		case alone && left > 0 && expected > left && expected <= costliest/costShare*most:
			long = max(time.Duration(most/(expected+most-left)*float64(slotTime)), shortSlot)
			left = 0
		default:
			continue
		}
		if isNew {
			unknown++
		}
		sites = append(sites, x.site)
	}
	return sites, long
}

// isClock reports whether nothing is counted but the clock.
func (c *Controls) isClock(sites []int) bool {
	return len(sites) == 0 || len(sites) == 1 && c.by[sites[0]] == c.clock
}

// unknown is the site that is hit most of those that have not been counted, as long as too little
// is known of the sites that make up the hits; -1: enough is. Those of what a server does once for
// all that wait are hit little, and say nothing of them.
func (c *Controls) unknown() (site int) {
	const enough = 0.3
	var known, all, most uint64
	site = -1
	for _, x := range c.list {
		n := c.within[x.site]
		all += n
		if x.rate() > 0 || x.tried {
			known += n
		} else if n > most {
			site, most = x.site, n
		}
	}
	if float64(known) >= enough*float64(all) {
		return -1
	}
	return site
}

// inTurn are the controls in the order in which they are to be counted: first the clock, if there
// is one, by which slots are compared; then those that have been counted, but in few slots; then
// others, and of those that windows come to as often as to another, for what runs together is
// counted by one of it, the others later, as those that are dear.
func (c *Controls) inTurn(mostHits float64, isDear func(*control) bool) []*control {
	const few, later, clockShare, leastHits = 4, 8, 0.4, 50
	list := slices.Clone(c.list)
	turns := map[*control]int{}
	for i, x := range list {
		switch n := len(x.slots); {
		case n == 0 && slices.ContainsFunc(list[:i], func(y *control) bool {
			return c.alike(x.site, y.site)
		}), n < few && isDear(x):
			turns[x] = few + later
		case n == 0 || n >= few:
			turns[x] = few + n
		default:
			turns[x] = n
		}
	}
	slices.SortStableFunc(list, func(a, b *control) int { return cmp.Compare(turns[a], turns[b]) })
	if c.clock == nil {
		for _, x := range c.list {
			hits, _, _ := x.sums()
			if hits >= leastHits && x.rate() <= clockShare*mostHits &&
				(c.clock == nil || x.rate() > c.clock.rate()) {
				c.clock = x
			}
		}
	}
	if i := slices.Index(list, c.clock); i >= 0 {
		list = slices.Insert(slices.Delete(list, i, i+1), 0, c.clock)
	}
	return list
}

// alike reports whether windows come to two sites equally often, as they do to what runs together.
func (c *Controls) alike(a, b int) bool {
	const off, offBy = 0.01, 2
	m, n := float64(c.within[a]), float64(c.within[b])
	return math.Abs(m-n) <= max(off*max(m, n), offBy)
}

// hitRate is how often all sites are hit in a ns of the program's own time, as far as that is
// known: by those that were counted, the more the more they are hit. What a server does once for
// all that wait is rarer in windows than outside, by far, and what it does from time to time more
// frequent.
func (c *Controls) hitRate() float64 {
	const enough = 30 // hits
	var sum, weights float64
	for _, x := range c.list {
		if hits, _, _ := x.sums(); hits >= enough || x.hint > 0 {
			within := float64(c.within[x.site])
			sum += within * math.Log(x.rate()*float64(c.all)/within)
			weights += within
		}
	}
	if weights == 0 {
		return mostHitRate
	}
	return min(math.Exp(sum/weights), mostHitRate)
}

// sums are those of the slots of a control.
func (x *control) sums() (hits uint64, own, cost time.Duration) {
	for _, s := range x.slots {
		hits, own, cost = hits+s.Hits, own+s.Own(), cost+s.Cost
	}
	return hits, own, cost
}

// rate is how often it is hit in a ns of the program's own time; 0: that is not known.
func (x *control) rate() float64 {
	if len(x.slots) == 0 {
		return x.hint
	}
	hits, own, _ := x.sums()
	return float64(hits) / float64(max(own, time.Microsecond))
}

// add notes what came of a slot: how often each of the sites was hit, that all of this has cost so
// much of the CPU time that the process used, and what putting the probes in and out has.
func (c *Controls) add(sites []int, hits []uint64, used, cost, change time.Duration) {
	c.slots++
	c.spent += cost + change
	c.postpone()
	own := used - cost
	for i, site := range sites {
		x := c.by[site]
		x.tried = true
		// Which is in doubt then. Of others no slot is left out by what came of it: of those that
		// are left the rate would be another.
		if len(x.slots) == 0 && own < used/2 {
			x.hint = float64(hits[i]) / float64(max(own, used/8, 1))
			continue
		}
		x.slots = append(x.slots, counted.Slot{Number: c.slots, Hits: hits[i], Used: used,
			Cost: cost})
		if len(x.slots) > mostSlots {
			x.slots = halve(x.slots, func(a, b counted.Slot) counted.Slot {
				return counted.Slot{Number: a.Number, Hits: a.Hits + b.Hits, Used: a.Used + b.Used,
					Cost: a.Cost + b.Cost}
			})
		}
	}
}

// ownTime is how much of the CPU time in windows, in ns, was the process's own, by how often it
// came to the controls there, and comes to them in its own time; not known: too little was counted.
func (c *Controls) ownTime() cluster.Factor {
	if c == nil {
		return cluster.Factor{}
	}
	var things [][]cluster.Slot
	var times []cluster.Factor
	var weights []float64
	common := cluster.Factor{}
	for _, x := range c.list {
		things = append(things, clusters(x.slots))
	}
	const enough = 0.1 // of the hits of all controls
	var cost, own time.Duration
	covered, all := 0.0, 0.0
	for i, rate := range cluster.Rates(things) {
		x := c.list[i]
		n := float64(c.within[x.site])
		all += n
		if !rate.IsKnown() || n == 0 {
			continue
		}
		_, o, k := x.sums()
		cost, own, covered = cost+k, own+o, covered+n
		times = append(times, cluster.Certain(n/rate.Value))
		if !common.IsKnown() || rate.Surer(common) {
			common = rate
		}
		weights = append(weights, n)
	}
	if own <= 0 || covered < enough*all {
		return cluster.Factor{}
	}
	return cluster.Mean(times, weights).Times(common.Doubt()).
		Times(cluster.Doubtful(1, hitDoubt*float64(cost)/float64(own)))
}

// Counts are what was counted; own is the CPU time that the process used in no window of its own.
// nil: nothing was counted.
func (c *Controls) Counts(own time.Duration) *counted.Counts {
	if c == nil || c.slots == 0 {
		return nil
	}
	counts := &counted.Counts{Own: own}
	for _, x := range c.list {
		if len(x.slots) == 0 {
			continue
		}
		s := &c.plan.Sites[x.site]
		r := c.plan.Routines[s.Routine]
		counts.Sites = append(counts.Sites, counted.Site{Routine: s.Routine,
			Addr: r.Blocks[s.Block].Insns[0].Addr, Once: c.isOnce(x.site),
			Slots: slices.Clone(x.slots)})
	}
	return counts
}

// clusters are slots as package cluster has them, by ns.
func clusters(slots []counted.Slot) (list []cluster.Slot) {
	for _, s := range slots {
		list = append(list, cluster.Slot{Number: s.Number, Hits: float64(s.Hits),
			Time: float64(s.Own())})
	}
	return list
}

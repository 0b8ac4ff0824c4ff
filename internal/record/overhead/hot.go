package overhead

import "time"

// coldShare is what share of the budget hits of cold sites may take between windows.
const coldShare = 0.1

// MostColdHits is how many hits of cold sites the budget allows while the process has used so much
// CPU time of its own, of which a hit takes cost.
func (s *Scheduler) MostColdHits(own, cost time.Duration) uint64 {
	return uint64(coldShare * s.budget.share * float64(max(own, 0)) / float64(max(cost, 1)))
}

// MostHot is how many sites that are hit often a process may have, which uses load CPUs: with the
// probes of more, a window's changes would hold it up for longer than l allows, or would take so
// much of a budget of that share that there would be less than a window a second.
func MostHot(share float64, l Limits, load float64) int {
	const change = 2 * usualOut // of a site's probe, in and out
	within := float64(l.Stall-leastWindow) / float64(change)
	hits := float64(leastWindow) * min(1, load)
	affordable := (share*load*float64(time.Second) - hits) / (load * float64(change))
	return max(int(min(within, affordable)), leastHot)
}

// leastHot sites are worth tracing whatever the budget: they are a few routines.
const leastHot = 50

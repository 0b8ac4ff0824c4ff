package overhead

import "time"

// coldShare is what share of the budget hits of cold sites may take between windows.
const coldShare = 0.1

// MostColdHits is how many hits of cold sites the budget allows while the process has used so much
// CPU time of its own, of which a hit takes cost.
func (s *Scheduler) MostColdHits(own, cost time.Duration) uint64 {
	return uint64(coldShare * s.budget.share * float64(max(own, 0)) / float64(max(cost, 1)))
}

package overhead

import (
	"cmp"
	"slices"
	"time"
)

// coldShare is what share of the budget hits of cold sites may take between windows.
const coldShare = 0.1

// MostColdHits is how many hits of cold sites the budget allows while the process has used so much
// CPU time of its own, of which a hit takes cost.
func (s *Scheduler) MostColdHits(own, cost time.Duration) uint64 {
	return uint64(coldShare * s.budget.share * float64(max(own, 0)) / float64(max(cost, 1)))
}

// HotSites lists the fewest sites without which no more than most of the hits remain, in order.
// hits are those of some sites in the same time, by site.
func HotSites(hits map[int]uint64, most uint64) (hot []int) {
	left := uint64(0)
	list := make([]int, 0, len(hits))
	for site, n := range hits {
		left += n
		list = append(list, site)
	}
	slices.SortFunc(list,
		func(a, b int) int { return cmp.Or(cmp.Compare(hits[b], hits[a]), cmp.Compare(a, b)) })
	for _, site := range list {
		if left <= most {
			break
		}
		left -= hits[site]
		hot = append(hot, site)
	}
	slices.Sort(hot)
	return hot
}

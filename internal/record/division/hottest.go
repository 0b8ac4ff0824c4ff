package division

import (
	"cmp"
	"slices"
)

// hottest lists the fewest sites without which no more than most of the hits remain, in order.
// hits are those of some sites in the same time, by site.
func hottest(hits map[int]uint64, most uint64) (hot []int) {
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

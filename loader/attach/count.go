package attach

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Count counts the hits of each of some sites, given by their indices in the plan, while wait runs
// and no hot probes stand. Those that are not cold stand meanwhile; before wait, settle runs while
// they do. None of the hits is reported.
// Cost: a few ms besides, that of SiteHits, and what the probes take that go in and out.
func (g Groups) Count(sites []int, settle, wait func() error) (hits []uint64, err error) {
	s := g.session
	list := s.images.stray(sites)
	err = s.images.check(list, (*mapped).untouched)
	if err == nil {
		hits, err = g.countAt(list, sites, settle, wait)
	}
	if err != nil {
		err = cmp.Or(s.changed(s.images.executable().file), err)
		return nil, fmt.Errorf("count hits in process %d (%s): %w", s.process.PID, s.process.Name,
			err)
	}
	return hits, nil
}

// stray makes groups of those sites that are hot, for a while.
func (x *images) stray(sites []int) (list []place) {
	for _, m := range x.list {
		var own []int
		for _, i := range sites {
			if _, isHot := slices.BinarySearch(m.hot().cookies, uint64(i)); isHot {
				own = append(own, i-m.first)
			}
		}
		if len(own) > 0 {
			list = append(list, place{m, m.groupOf(own)})
		}
	}
	return list
}

func (g Groups) countAt(list []place, sites []int, settle, wait func() error) (hits []uint64,
	err error) {
	s := g.session
	defer func() { err = errors.Join(err, s.images.takeOut(list, s.guard)) }()
	if err := s.images.put(list, s.guard); err != nil {
		return nil, err
	}
	if err := s.images.check(list, (*mapped).standing); err != nil {
		return nil, err
	}
	if err := settle(); err != nil {
		return nil, err
	}
	before, err := s.Counters().SiteHits(len(s.images.plan.Sites))
	if err != nil {
		return nil, err
	}
	if err := wait(); err != nil {
		return nil, err
	}
	after, err := s.Counters().SiteHits(len(s.images.plan.Sites))
	if err != nil {
		return nil, err
	}
	for _, i := range sites {
		hits = append(hits, after[i]-before[i])
	}
	return hits, nil
}

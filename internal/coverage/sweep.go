package coverage

import (
	"cmp"
	"slices"
	"time"

	"wpptrace/loader/firsthit"
)

// patience is how many passages with one outcome a jump may have while the other outcome, which
// nothing else shows, has not been seen: so many take a millisecond or two. When the probes have
// been in for patienceLasts, it is lessPatience: what is passed again and again until then without
// the other outcome would cost for long.
const (
	patience      = 2048
	lessPatience  = 256
	patienceLasts = 5 * time.Second
)

// sweeps are looks at all counters, by which sites are found whose probes have shown what they can,
// and that are passed now and then: too seldom to be reported.
type sweeps struct {
	began  time.Time // when all probes stood; zero: they do not yet
	next   time.Time // when it is time for a sweep
	counts []uint64  // at the last one
	// passages in vain of a group's sites since it was put in, as far as they have been seen
	vain map[*firsthit.Group]uint64
}

// begun reports whether all probes stand.
func (s *sweeps) begun() bool { return !s.began.IsZero() }

func (s *sweeps) patience() uint64 {
	if s.begun() && time.Since(s.began) > patienceLasts {
		return lessPatience
	}
	return patience
}

// beginSweeps says that all probes stand.
func (w *watch) beginSweeps() error {
	const first = time.Second
	s := &w.sweeps
	s.began = time.Now()
	s.next = s.began.Add(first)
	s.vain = map[*firsthit.Group]uint64{}
	s.counts = make([]uint64, w.session.Counters())
	return w.session.Passages(s.counts)
}

// sweep replaces the groups of which sites were passed in vain since the last time, if it is time:
// in the first seconds all of them, later those of which so many were that it is worth it.
func (w *watch) sweep() error {
	const (
		longest = time.Minute
		early   = 10 * time.Second
		// passages that take as long as to put a probe in again that stands
		worth = 16
		pause = 20 * time.Millisecond // behind each group, which takes a millisecond or two
	)
	s := &w.sweeps
	now := time.Now()
	if now.Before(s.next) {
		return nil
	}
	vain, err := w.inVain()
	if err != nil {
		return err
	}
	age := now.Sub(s.began)
	s.next = now.Add(min(age, longest))
	var list []*firsthit.Group
	for g, n := range vain {
		s.vain[g] += n
		if age < early || s.vain[g] >= uint64(worth*len(g.Places)) {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *firsthit.Group) int { return -cmp.Compare(vain[a], vain[b]) })
	for _, g := range list {
		if w.woken {
			return nil
		}
		if !w.groups[g] { // it has gone meanwhile
			continue
		}
		if err := w.replace(g); err != nil {
			return err
		}
		if err := w.attend(time.Now().Add(pause)); err != nil {
			return err
		}
	}
	return nil
}

// inVain counts by group, since it was last called, the passages of sites that stand though they
// have shown what they can.
func (w *watch) inVain() (map[*firsthit.Group]uint64, error) {
	now := make([]uint64, w.session.Counters())
	if err := w.session.Passages(now); err != nil {
		return nil, err
	}
	before := w.sweeps.counts
	w.sweeps.counts = now
	vain := map[*firsthit.Group]uint64{}
	for i, g := range w.in {
		n := [firsthit.Outcomes]uint64(now[i*firsthit.Outcomes:])
		if g == nil || !w.isDone(i, n) {
			continue
		}
		for o := range n {
			if k := i*firsthit.Outcomes + o; k < len(before) {
				n[o] -= before[k]
			}
		}
		if d := n[0] + n[1]; d > 0 {
			vain[g] += d
		}
	}
	return vain, nil
}

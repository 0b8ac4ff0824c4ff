package tally

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"wpptrace/bpf"
)

// A state is what the kernel remembers of a thread.
type state struct {
	hits uint64 // begun and ended: odd in the midst of one
	row  uint32
	cfa  uint64
}

// stateOf reads the state of a thread: the zero state, if it has made no hit.
func (s *Session) stateOf(tid int) (state, error) {
	var t bpf.CountCountThread
	slot := uint32(tid) % s.objects.Slots.MaxEntries() // which another thread may have
	err := s.objects.Slots.Lookup(slot, &t)
	if err == nil && t.Tid != uint32(tid) {
		err = s.objects.Threads.Lookup(uint32(tid), &t)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return state{}, nil
		}
	}
	if err != nil {
		return state{}, fmt.Errorf("read the state of thread %d: %w", tid, err)
	}
	return state{t.Hits, t.Row, t.Cfa}, nil
}

// states reads those of threads.
func (s *Session) states(tids []int) ([]state, error) {
	list := make([]state, len(tids))
	for i, tid := range tids {
		var err error
		if list[i], err = s.stateOf(tid); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Hits is how many hits threads have made, and those that have ended. Cost: some us a thread.
func (s *Session) Hits(tids []int) (n uint64, err error) {
	list, err := s.states(tids)
	if err != nil {
		return 0, err
	}
	for _, t := range list {
		n += t.hits
	}
	m, err := s.metrics()
	if err != nil {
		return 0, err
	}
	return (n + m[bpf.CountCountMetricCOUNT_ENDED]) / 2, nil
}

// Others says of each routine how often paths of it have run at least that are not counted by
// themselves, though threads run meanwhile. What a thread is in the midst of does not count, unless
// it is such a path for sure; nor do as many as signals have interrupted. threads lists those of
// the process: none, when it has ended. It is as much as is known within the effort, which is for
// routines that have more than before says. Cost: some us a thread and a thousand counters, and
// the effort.
func (s *Session) Others(threads func() []int, before []uint64,
	effort time.Duration) ([]uint64, error) {
	least := slices.Clone(before)
	c, err := s.Read()
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(effort)
	for r, f := range s.tables.rest {
		if f == nil {
			continue
		}
		for c.Value(f, s.tables.First[r]) > least[r] {
			n, moved, err := s.othersOf(r, threads, c)
			if err != nil {
				return nil, err
			}
			if n > least[r] {
				least[r] = n
				break
			}
			if !moved || !time.Now().Before(until) {
				break
			}
		}
	}
	return least, nil
}

// othersOf reads the counters of a routine anew, while it looks that no thread goes on: moved says
// that one has, so that another attempt may say more.
func (s *Session) othersOf(r int, threads func() []int, c *Counts) (n uint64, moved bool,
	err error) {
	tids := threads()
	states, err := s.states(tids)
	if err != nil {
		return 0, false, err
	}
	if err := s.readDense(c, s.tables.First[r], s.tables.size[r]); err != nil {
		return 0, false, err
	}
	after, err := s.states(tids)
	if err != nil {
		return 0, false, err
	}
	doubt := uint64(0)
	for i, t := range states {
		at, open := s.tables.open[t.row]
		switch {
		case t != after[i] || t.hits%2 == 1:
			doubt, moved = doubt+1, true
		case t.hits > 0 && open && at == r:
			doubt++
		}
	}
	for _, tid := range threads() { // those that have come
		if !slices.Contains(tids, tid) {
			doubt, moved = doubt+1, true
		}
	}
	m, err := s.metrics()
	if err != nil {
		return 0, false, err
	}
	doubt += m[bpf.CountCountMetricCOUNT_AMID]
	n = c.Value(s.tables.rest[r], s.tables.First[r])
	return n - min(n, doubt), moved, nil
}

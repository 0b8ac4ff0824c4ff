package guard

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
)

// A slow placement is taken out when it is released. It counts how many are being taken out.
type slow struct {
	busy    *atomic.Int32
	most    *atomic.Int32
	release chan struct{}
	err     error
}

func (s slow) Close() error {
	n := s.busy.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	<-s.release
	s.busy.Add(-1)
	return s.err
}

// Placements that can wait are taken out by a few threads, and all of them are.
func TestRemoveInTurn(t *testing.T) {
	const placements = 5 * mostTurns
	var busy, most atomic.Int32
	failed := errors.New("it failed")
	s := &server{probes: map[int]io.Closer{}}
	list := make([]slow, placements)
	var ids []int
	for i := range list {
		list[i] = slow{busy: &busy, most: &most, release: make(chan struct{})}
		if i == placements-1 {
			list[i].err = failed
		}
		s.probes[i] = list[i]
		ids = append(ids, i)
	}
	if _, err := s.do(&request{Remove: ids, InTurn: 1}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range list { // one ends after the other, in their order
		close(list[i].release)
	}
	if err := s.settle(); !errors.Is(err, failed) {
		t.Errorf("the placements are gone with %v, want %v", err, failed)
	}
	if n := most.Load(); n > mostTurns {
		t.Errorf("%d placements were taken out at the same time, %d may be", n, mostTurns)
	}
	if len(s.probes) > 0 || s.turns != 0 || len(s.waiting) > 0 {
		t.Errorf("%d placements stand, %d threads run, %d wait", len(s.probes), s.turns,
			len(s.waiting))
	}
	if _, err := s.do(&request{Remove: []int{0}, InTurn: 1}, nil); err == nil {
		t.Error("a placement that has gone is taken out again")
	}
}

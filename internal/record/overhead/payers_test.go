package overhead

import (
	"testing"
	"time"

	"wpptrace/loader/target"
)

// TestPayers: who pays is charged with what it uses, once; one that is exempt, or has ended, not.
func TestPayers(t *testing.T) {
	type times = map[int]time.Duration
	var p Payers
	p.Exempt(times{1: 100})
	for i, c := range []struct {
		now  times
		want time.Duration
	}{
		{times{1: 200}, 0},
		{times{1: 300, 2: 5, 3: 7}, 12},
		{times{1: 300, 2: 15, 3: 7}, 10},
		{times{3: 8}, 1},
		{times{2: 4, 3: 8}, 4}, // another of the same number
		{nil, 0},
	} {
		if got := p.More(c.now); got != c.want {
			t.Errorf("%d: %d, not %d", i, got, c.want)
		}
	}
	p.Exempt(times{3: 9})
	if got := p.More(times{3: 20, 4: 1}); got != 1 {
		t.Errorf("afterwards: %d", got)
	}
}

// TestForksAreCharged: what they use puts off the next window, and is none of the process's own.
func TestForksAreCharged(t *testing.T) {
	s := NewScheduler(0.05, Limits{Window: usualWindow}, target.Times{}, 1, nil)
	before := s.Overhead()
	s.ChargeForks(time.Second)
	if s.MayChange() || s.Wait() < 19*time.Second || s.Overhead() != before {
		t.Errorf("%v until the next window, overhead %v", s.Wait(), s.Overhead())
	}
}

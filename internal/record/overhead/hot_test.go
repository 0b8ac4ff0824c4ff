package overhead

import (
	"testing"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// TestMostColdHits: cold sites may take a tenth of the budget.
func TestMostColdHits(t *testing.T) {
	s := NewScheduler(0.05, Limits{Window: usualWindow}, target.Times{}, 1, nil)
	if got := s.MostColdHits(time.Second, 500*time.Nanosecond); got != 10_000 {
		t.Errorf("%d hits a second, not 10,000", got)
	}
	if got := s.MostColdHits(-time.Second, 0); got != 0 {
		t.Errorf("%d hits in no time", got)
	}
}

// TestMostHot: the stall bounds the sites of a window where the budget is large, else the budget; a
// few there are always.
func TestMostHot(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		share, load float64
		stall       time.Duration
		want        int
	}{
		{0.05, 1, 20 * ms, 400}, {0.05, 0.4, 20 * ms, 400}, {0.05, 1, 40 * ms, 900},
		{0.01, 1, 20 * ms, 150}, {0.01, 0.5, 20 * ms, 150}, {0.001, 1, 20 * ms, leastHot},
		{0.05, 1, 0, leastHot},
	} {
		if got := MostHot(c.share, Limits{Stall: c.stall}, c.load); got != c.want {
			t.Errorf("%v of %v CPUs, stalls of %v: %d sites, not %d", c.share, c.load, c.stall, got,
				c.want)
		}
	}
}

// TestStallBoundsWindow: a window is as long as it may be, with its changes.
func TestStallBoundsWindow(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ in, out, want time.Duration }{
		{0, 0, 20 * ms}, {3 * ms, 2 * ms, 15 * ms}, {30 * ms, 5 * ms, leastWindow},
	} {
		s := NewScheduler(0.05, Limits{Window: 50 * ms, Stall: 20 * ms}, target.Times{}, 1, nil)
		s.ChargeChange(s.BeginChange(), 1, attach.Changes{Probes: 100, Took: c.in})
		s.Open()
		s.ChargeChange(s.BeginChange(), 1, attach.Changes{Probes: 100, Took: c.out})
		if got := s.length(); got != c.want {
			t.Errorf("changes of %v and %v: a window lasts %v, not %v", c.in, c.out, got, c.want)
		}
	}
}

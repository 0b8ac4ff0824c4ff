package overhead

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

func TestHotSites(t *testing.T) {
	for _, c := range []struct {
		name string
		hits map[int]uint64
		most uint64
		want []int
	}{
		{"none are hit", nil, 0, nil},
		{"all may stay", map[int]uint64{1: 3, 2: 4}, 7, nil},
		{"those hit most go", map[int]uint64{1: 1, 2: 900, 3: 2, 4: 1000}, 3, []int{2, 4}},
		{"none may stay", map[int]uint64{7: 1, 3: 1}, 0, []int{3, 7}},
	} {
		if got := HotSites(c.hits, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// What stays is within the bound, and no smaller number of sites would do.
func TestHotSitesAreTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hits := rapid.MapOf(rapid.IntRange(0, 50), rapid.Uint64Range(0, 100)).Draw(t, "hits")
		most := rapid.Uint64Range(0, 500).Draw(t, "most")
		hot := HotSites(hits, most)
		left, least := uint64(0), ^uint64(0)
		for site, n := range hits {
			if _, isHot := slices.BinarySearch(hot, site); isHot {
				least = min(least, n)
			} else {
				left += n
			}
		}
		if left > most {
			t.Fatalf("%d hits are left, more than %d", left, most)
		}
		if len(hot) > 0 && left+least <= most {
			t.Fatalf("%v are hot, one of them with %d hits: %d are left of %d", hot, least, left, most)
		}
	})
}

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

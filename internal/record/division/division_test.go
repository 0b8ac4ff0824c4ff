package division

import (
	"slices"
	"testing"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A fakeUsage is a process that has used no time, and whose hits cost a microsecond.
type fakeUsage []uint64

func (fakeUsage) Used() (target.Times, error) { return target.Times{}, nil }
func (fakeUsage) HitCost() time.Duration      { return time.Microsecond }
func (u fakeUsage) Recorded() []uint64        { return u }

// made is a division of so many sites, of two routines by turns.
func made(sites int, u Usage) *Division {
	pl := &plan.Plan{}
	for i := range sites {
		pl.Sites = append(pl.Sites, plan.Site{Routine: i % 2})
	}
	s := overhead.NewScheduler(0.05, overhead.Limits{}, target.Times{}, 1, nil)
	return New(nil, nil, nil, pl, s, u)
}

// TestBegin: where one window takes all sites none is tried; else those of the routines with the
// most samples are not.
func TestBegin(t *testing.T) {
	for _, c := range []struct{ sites, untried int }{{mostHot, 0}, {2 * mostHot, mostHot}} {
		d := made(c.sites, fakeUsage{})
		d.Begin(map[int]uint64{1: 10})
		if len(d.untried) != c.untried || d.IsDone() != (c.untried == 0) ||
			d.MayOpen() != (c.untried == 0) {
			t.Errorf("of %d sites %d are to be tried, not %d", c.sites, len(d.untried), c.untried)
		}
		if slices.ContainsFunc(d.untried, func(site int) bool { return site%2 == 1 }) {
			t.Errorf("of %d sites, those of a routine with samples are to be tried", c.sites)
		}
	}
}

// TestCooled: a site turns cold when windows have hardly come to it, at once if it never was; who
// was cold before, and was hit often once, has to be idle for long.
func TestCooled(t *testing.T) {
	const sites, busy, wasCold, longIdle = 100, 7, 8, 8
	hits := make(fakeUsage, sites)
	d := made(sites, hits)
	d.grow()
	d.sites[wasCold].wasCold = true
	own := time.Duration(0)
	window := func(n uint64) []int {
		hits[busy] += n
		own += time.Millisecond
		return d.cooled(own)
	}
	if got := window(10); got != nil {
		t.Errorf("after 10 hits, %v turn cold", got)
	}
	got := window(5000)
	if len(got) != sites-2 || slices.Contains(got, busy) || slices.Contains(got, wasCold) {
		t.Errorf("%d sites turn cold, not %d: %v", len(got), sites-2, got)
	}
	for i := 2; i <= longIdle; i++ {
		got = window(5000)
		if slices.Contains(got, wasCold) != (i == longIdle) || slices.Contains(got, busy) {
			t.Errorf("after %d windows, %v turn cold", i, got)
		}
	}
}

// TestTake: sites go in in order, whatever the order in which their turn comes.
func TestTake(t *testing.T) {
	var list []int
	for i := range 3 * trySize / 2 {
		list = append(list, i*7%(3*trySize/2))
	}
	first, second := take(&list), take(&list)
	if len(first) != trySize || len(second) != trySize/2 || len(list) != 0 ||
		!slices.IsSorted(first) || !slices.IsSorted(second) {
		t.Errorf("%d and %d sites, %d left", len(first), len(second), len(list))
	}
}

// TestSleeperIsNotWatched: of a process that sleeps it is not known soon whether sites are cold:
// nobody waits for that, or looks all the time.
func TestSleeperIsNotWatched(t *testing.T) {
	d := made(mostHot, fakeUsage{})
	d.isFresh, d.placed = true, time.Now()
	busy := d.Pause()
	if d.IsSettled() {
		t.Error("sites that became cold just now are not looked at")
	}
	d.placed = time.Now().Add(-time.Minute)
	if !d.IsSettled() || d.Pause() <= busy {
		t.Errorf("a minute later it is looked every %v; settled: %v", d.Pause(), d.IsSettled())
	}
}

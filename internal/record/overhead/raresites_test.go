package overhead

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"wpptrace/loader/plan"
)

// The sites that are counted between windows are the rarest of which enough is known.
func TestRareSitesChoosesRareSites(t *testing.T) {
	sites := make([]plan.Site, 5)
	sites[4].Stepped = true
	chosen := func(costly bool, share float64) RareSites {
		return RareSites{sites: []int{1}, costly: costly, share: share, times: 3, hits: 1000}
	}
	for _, c := range []struct {
		name   string
		within []uint64
		before RareSites
		want   []int
		again  bool // they are counted from scratch
	}{
		{"nothing is known", []uint64{0, 0, 0, 0, 0}, RareSites{share: firstShare}, nil, false},
		{"all are usual", []uint64{1000, 900, 1000, 0, 0}, RareSites{share: firstShare}, nil,
			false},
		{"all are usual for long", []uint64{100_000, 90_000, 100_000, 0, 0},
			RareSites{share: firstShare}, []int{1}, true},
		{"rare", []uint64{100_000, 90, 100_000, 70, 0}, RareSites{share: firstShare}, []int{1, 3},
			true},
		{"enough", []uint64{200_000, 150, 200_000, 130, 160}, RareSites{share: firstShare},
			[]int{1, 3}, true},
		{"too rare", []uint64{100_000, 150, 100_000, leastOfSite - 1, 0},
			RareSites{share: firstShare}, []int{1}, true},
		{"single-stepped", []uint64{100_000, 150, 100_000, 0, 50}, RareSites{share: firstShare},
			[]int{1}, true},
		{"chosen before", []uint64{100_000, 150, 100_000, 50, 0}, chosen(false, firstShare),
			[]int{1}, false},
		{"too costly", []uint64{200_000, 200, 200_000, 50, 0}, chosen(true, firstShare*lessShare),
			[]int{3}, true},
		{"too costly, and nothing else", []uint64{200_000, 90_000, 200_000, 0, 0},
			chosen(true, firstShare*lessShare), []int{1}, false},
		{"they come no more, and nothing else does", []uint64{100, 150, 100, 0, 0},
			RareSites{share: firstShare, sites: []int{1}, chosenAt: 100, allAt: 300,
				times: idleTimes}, nil, false},
		{"they come no more", []uint64{100_000, 150, 100_000, 200, 0},
			RareSites{share: firstShare, sites: []int{1}, times: idleTimes, hits: idleTimes - 1},
			[]int{3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.before
			r.within = make([]uint64, len(sites))
			for site, n := range c.within {
				r.Count(site, n)
			}
			r.Count(len(sites), 1000) // of a library
			if ok := r.choose(sites); ok != (c.want != nil) || !slices.Equal(r.sites, c.want) ||
				r.costly {
				t.Errorf("%v, %v, want %v", ok, r.sites, c.want)
			}
			if e, known := r.estimate(time.Second); known && c.again {
				t.Errorf("%+v, before anything has been counted", e)
			}
			if again := r.times == 0 && r.chosenAt == r.recorded() &&
				r.sites != nil; again != c.again {
				t.Errorf("counted %d times, chosen at %d of %d", r.times, r.chosenAt, r.recorded())
			}
		})
	}
}

// What windows were of the process's own time follows from how often it comes to the same sites
// outside.
func TestRareSitesEstimates(t *testing.T) {
	r := RareSites{within: make([]uint64, 2), share: firstShare}
	r.Count(0, 50_000)
	r.Count(1, 30)
	if !r.due(0) || !r.choose(make([]plan.Site, 2)) {
		t.Fatal("not due at first, or nothing to choose")
	}
	r.add(50_000, 50*time.Millisecond, 10*time.Millisecond, 0) // 1.25 a microsecond
	r.endWindow()
	if e, ok := r.estimate(time.Second); ok {
		t.Errorf("%+v, and it is known by nothing but what it was chosen by", e)
	}
	for range 400 { // windows
		r.Count(0, 499)
		r.Count(1, 10)
		r.endWindow()
	}
	want := float64(3200*time.Microsecond) * 253_630 / 203_600
	e, ok := r.estimate(time.Second)
	if !ok || math.Abs(e.own-want) > 1 || e.Vague() || e.doubt < windowDoubt*want {
		t.Errorf("%+v, %v", e, ok)
	}
	if r.due(50*time.Millisecond) || !r.due(100*time.Millisecond) {
		t.Error("10 ms are a tenth of 100 ms, and more of 50 ms")
	}
	if e, _ := r.estimate(time.Microsecond); e.own != e.cpu {
		t.Errorf("%+v: more than all", e)
	}
	for range 20 {
		r.add(50_000, 50*time.Millisecond, 10*time.Millisecond, 0)
	}
	if r.due(time.Hour) {
		t.Error("due, and nothing more is to be known")
	}
	r.add(50_000, 50*time.Millisecond, 45*time.Millisecond, 0)
	if !r.costly {
		t.Error("not too costly, and hits took most of the time")
	}
	e, _ = r.estimate(time.Hour)
	r.within = append(r.within, leastOfSite)
	if !r.choose(make([]plan.Site, 3)) || r.sites[0] != 2 {
		t.Errorf("chosen: %v", r.sites)
	}
	if next, ok := r.estimate(time.Hour); !ok || math.Abs(next.own-e.own) > 1 {
		t.Errorf("%+v, and the sites before gave %+v", next, e)
	}
}

// TestRareSitesIsNotOfChance: of many sites that are equally rare the one that is chosen is one
// that chance has brought up, which the estimate does not share.
func TestRareSitesIsNotOfChance(t *testing.T) {
	// a window comes to so many of the sites, and is a millisecond
	const runs, rare, windows, each = 100, 300, 450, 30
	random := rand.New(rand.NewPCG(1, 2))
	sum, known := 0.0, 0.0
	for range runs {
		r := RareSites{within: make([]uint64, rare+1), share: firstShare}
		for n := range windows {
			for range each {
				r.Count(random.IntN(rare), 1)
			}
			r.Count(rare, 100)
			r.endWindow()
			if n%10 == 0 && r.choose(make([]plan.Site, rare+1)) {
				hits := uint64(0)
				for range 200 * each {
					if slices.Contains(r.sites, random.IntN(rare)) {
						hits++
					}
				}
				r.add(hits, 200*time.Millisecond, 0, 0)
			}
		}
		if e, ok := r.estimate(time.Hour); ok {
			sum += e.own / float64(windows*time.Millisecond)
			known++
		}
	}
	if mean := sum / known; mean < 0.92 || mean > 1.08 || known < runs*0.9 {
		t.Errorf("known in %v of %d, and %.2f of what windows were", known, runs, mean)
	}
}

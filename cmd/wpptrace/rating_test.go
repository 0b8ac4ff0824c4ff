package main

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"wpptrace/compress/wpp/store"
	"wpptrace/loader/plan"
	"wpptrace/query"
)

// The sites that are counted between windows are the rarest of which enough is known.
func TestRatingChoosesRareSites(t *testing.T) {
	sites := make([]plan.Site, 5)
	sites[4].Stepped = true
	chosen := func(dear bool, share float64) rating {
		return rating{sites: []int{1}, dear: dear, share: share, times: 3, hits: 1000}
	}
	for _, c := range []struct {
		name   string
		within []uint64
		before rating
		want   []int
		again  bool // they are counted from scratch
	}{
		{"nothing is known", []uint64{0, 0, 0, 0, 0}, rating{share: firstShare}, nil, false},
		{"all are usual", []uint64{1000, 900, 1000, 0, 0}, rating{share: firstShare}, nil, false},
		{"all are usual for long", []uint64{100_000, 90_000, 100_000, 0, 0}, rating{share: firstShare}, []int{1}, true},
		{"rare", []uint64{100_000, 90, 100_000, 70, 0}, rating{share: firstShare}, []int{1, 3}, true},
		{"enough", []uint64{200_000, 150, 200_000, 130, 160}, rating{share: firstShare}, []int{1, 3}, true},
		{"too rare", []uint64{100_000, 150, 100_000, leastOfSite - 1, 0}, rating{share: firstShare}, []int{1}, true},
		{"single-stepped", []uint64{100_000, 150, 100_000, 0, 50}, rating{share: firstShare}, []int{1}, true},
		{"chosen before", []uint64{100_000, 150, 100_000, 50, 0}, chosen(false, firstShare), []int{1}, false},
		{"too dear", []uint64{200_000, 200, 200_000, 50, 0}, chosen(true, firstShare*lessShare), []int{3}, true},
		{"too dear, and nothing else", []uint64{200_000, 90_000, 200_000, 0, 0}, chosen(true, firstShare*lessShare), []int{1}, false},
		{"they come no more, and nothing else does", []uint64{100, 150, 100, 0, 0}, rating{share: firstShare, sites: []int{1}, chosenAt: 100, allAt: 300, times: idleTimes}, nil, false},
		{"they come no more", []uint64{100_000, 150, 100_000, 200, 0}, rating{share: firstShare, sites: []int{1}, times: idleTimes, hits: idleTimes - 1}, []int{3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.before
			r.within = make([]uint64, len(sites))
			for site, n := range c.within {
				r.count(site, n)
			}
			r.count(len(sites), 1000) // of a library
			if ok := r.choose(sites); ok != (c.want != nil) || !slices.Equal(r.sites, c.want) || r.dear {
				t.Errorf("%v, %v, want %v", ok, r.sites, c.want)
			}
			if e, known := r.estimate(time.Second); known && c.again {
				t.Errorf("%+v, before anything has been counted", e)
			}
			if again := r.times == 0 && r.chosenAt == r.recorded() && r.sites != nil; again != c.again {
				t.Errorf("counted %d times, chosen at %d of %d", r.times, r.chosenAt, r.recorded())
			}
		})
	}
}

// What windows were of the process's own time follows from how often it comes to the same sites
// outside.
func TestRatingEstimates(t *testing.T) {
	r := rating{within: make([]uint64, 2), share: firstShare}
	r.count(0, 50_000)
	r.count(1, 30)
	if !r.due(0) || !r.choose(make([]plan.Site, 2)) {
		t.Fatal("not due at first, or nothing to choose")
	}
	r.add(50_000, 50*time.Millisecond, 10*time.Millisecond, 0) // 1.25 a microsecond
	r.endWindow()
	if e, ok := r.estimate(time.Second); ok {
		t.Errorf("%+v, and it is known by nothing but what it was chosen by", e)
	}
	for range 400 { // windows
		r.count(0, 499)
		r.count(1, 10)
		r.endWindow()
	}
	want := float64(3200*time.Microsecond) * 253_630 / 203_600
	e, ok := r.estimate(time.Second)
	if !ok || math.Abs(e.own-want) > 1 || e.vague() || e.doubt < windowDoubt*want {
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
	if !r.dear {
		t.Error("not too dear, and hits took most of the time")
	}
	e, _ = r.estimate(time.Hour)
	r.within = append(r.within, leastOfSite)
	if !r.choose(make([]plan.Site, 3)) || r.sites[0] != 2 {
		t.Errorf("chosen: %v", r.sites)
	}
	if next, ok := r.estimate(time.Hour); !ok || math.Abs(next.own-e.own) > 1 {
		t.Errorf("%+v, and the sites before told %+v", next, e)
	}
}

// TestRatingIsNotOfChance: of many sites that are equally rare the one that is chosen is one that
// chance has brought up, which the estimate does not share.
func TestRatingIsNotOfChance(t *testing.T) {
	const runs, rare, windows, each = 100, 300, 450, 30 // a window comes to so many of the sites, and is a millisecond
	random := rand.New(rand.NewPCG(1, 2))
	sum, known := 0.0, 0.0
	for range runs {
		r := rating{within: make([]uint64, rare+1), share: firstShare}
		for n := range windows {
			for range each {
				r.count(random.IntN(rare), 1)
			}
			r.count(rare, 100)
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

// What is recorded in windows of a process that hits slow down hundreds of times tells how much it
// did in all.
func TestNumbersOfWindows(t *testing.T) {
	const dear = 2 * time.Microsecond // a hit: then it runs thousands of times slower, not hundreds
	var p progress
	pid := startCalls(t, p.note)
	w := startTracer(t, "-v", "-p", strconv.Itoa(pid), "-o", "x.wpp")
	w.expect("recording process")
	began := time.Now()
	for _, event := range []string{"rare sites were counted", "rare sites were counted", "a window has ended", "a window has ended", "a window has ended"} {
		w.expect(event)
	}
	w.signal(os.Interrupt)
	w.wait(0)
	took := time.Since(began)
	s, err := store.ReadFile(w.path("x.wpp"))
	if err != nil {
		t.Fatal(err)
	}
	_, entries, err := query.BlockCounts(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	recorded := uint64(0)
	for n := range maps.Values(entries) {
		recorded += n
	}
	ran := float64(took) / float64(p.stretch(t, began, began.Add(took))) * 1e6
	if most := s.Figures.SampledMost; most > 0 && s.Figures.HitTime > dear { // which is promised where counting does not tell
		if float64(recorded) > ran*most {
			t.Errorf("%d calls, at most %.3g of it, and it made %.3g", recorded, most, ran)
		}
		return
	}
	told := float64(recorded) / s.Figures.Sampled
	factor := 4.0 // little is recorded; without counting it would be some hundred
	if s.Figures.HitTime > dear {
		factor = 40
	}
	if told < ran/factor || told > factor*ran {
		t.Errorf("%d calls in %d windows, %.3g (at most %.3g) of it: %.3g calls, and it made %.3g", recorded, s.Figures.Windows, s.Figures.Sampled, s.Figures.SampledMost, told, ran)
	}
}

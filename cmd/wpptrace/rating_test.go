package main

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/loader/plan"
	"wpptrace/query"
)

// The sites that are counted between windows are the rarest of which enough is known.
func TestRatingChoosesRareSites(t *testing.T) {
	sites := make([]plan.Site, 5)
	sites[4].Stepped = true
	for _, c := range []struct {
		name   string
		within []uint64
		before rating
		want   []int
	}{
		{"nothing is known", []uint64{0, 0, 0, 0, 0}, rating{}, nil},
		{"all are usual", []uint64{1000, 900, 1000, 0, 0}, rating{}, nil},
		{"all are usual for long", []uint64{100_000, 90_000, 100_000, 0, 0}, rating{}, []int{1}},
		{"rare", []uint64{100_000, 90, 100_000, 70, 0}, rating{}, []int{3, 1}},
		{"enough", []uint64{200_000, 150, 200_000, 130, 160}, rating{}, []int{3, 1}},
		{"too rare", []uint64{100_000, 150, 100_000, leastOfSite - 1, 0}, rating{}, []int{1}},
		{"single-stepped", []uint64{100_000, 150, 100_000, 0, 50}, rating{}, []int{1}},
		{"chosen before", []uint64{100_000, 150, 100_000, 50, 0}, rating{sites: []int{1}}, []int{1}},
		{"too dear", []uint64{200_000, 200, 200_000, 50, 0}, rating{sites: []int{1}, dear: true, share: firstShare * lessShare}, []int{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.before
			r.share = cmp.Or(r.share, firstShare)
			r.within = make([]uint64, len(sites))
			for site, n := range c.within {
				r.count(site, n)
			}
			r.count(len(sites), 1000) // of a library
			if ok := r.choose(sites); ok != (c.want != nil) || !slices.Equal(r.sites, c.want) || r.dear {
				t.Errorf("%v, %v, want %v", ok, r.sites, c.want)
			}
		})
	}
}

// What windows were of the process's own time follows from how often it comes to the same sites outside.
func TestRatingEstimates(t *testing.T) {
	r := rating{within: []uint64{0, 1000}, sites: []int{1}}
	if e, ok := r.estimate(time.Second); ok {
		t.Errorf("%+v, and nothing has been counted", e)
	}
	if !r.due(0) {
		t.Error("not due at first")
	}
	r.add(50_000, 50*time.Millisecond, 10*time.Millisecond) // 1.25 a microsecond
	e, ok := r.estimate(time.Second)
	if want := float64(800 * time.Microsecond); !ok || math.Abs(e.own-want) > 1 || e.vague() || e.doubt < ratingDoubt*want {
		t.Errorf("%+v, %v", e, ok)
	}
	if r.due(50*time.Millisecond) || !r.due(100*time.Millisecond) {
		t.Error("10 ms are a tenth of 100 ms, and more of 50 ms")
	}
	if e, _ := r.estimate(time.Microsecond); e.own != e.cpu {
		t.Errorf("%+v: more than all", e)
	}
	r.add(50_000, 50*time.Millisecond, 45*time.Millisecond)
	if e, ok := r.estimate(time.Second); !r.dear || !ok || e.doubt < 2*ratingDoubt*e.own {
		t.Errorf("%v, %+v: hits took most of the time", r.dear, e)
	}
}

// What is recorded in windows of a process that hits slow down a hundred times tells how much it did in all.
func TestNumbersOfWindows(t *testing.T) {
	var p progress
	pid := startCalls(t, p.note)
	w := startTracer(t, "-p", strconv.Itoa(pid), "-d", "4s", "-o", "x.wpp")
	w.expect("recording process")
	began := time.Now()
	w.wait(0)
	s, err := wpp.ReadFile(w.path("x.wpp"))
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
	ran := float64(4*time.Second) / float64(p.stretch(t, began, began.Add(4*time.Second))) * 1e6
	told := float64(recorded) / s.Figures.Sampled
	t.Logf("%d calls in %d windows, %.3g of it: %.3g, of %.3g", recorded, s.Figures.Windows, s.Figures.Sampled, told, ran)
	const factor = 4 // in so short a time; the recording tells what it is at most where it is in doubt
	if told < ran/factor || told > factor*ran {
		t.Errorf("%.3g calls, and it made %.3g", told, ran)
	}
}

package main

import (
	"maps"
	"os"
	"strconv"
	"testing"
	"time"

	"wpptrace/compress/wpp/store"
	"wpptrace/query"
)

// What is recorded in windows of a process that hits slow down hundreds of times says how much it
// did in all.
func TestNumbersOfWindows(t *testing.T) {
	const dear = 2 * time.Microsecond // a hit: then it runs thousands of times slower, not hundreds
	var p progress
	pid := startCalls(t, p.note)
	w := startTracer(t, "-v", "-p", strconv.Itoa(pid), "-o", "x.wpp")
	w.expect("recording process")
	began := time.Now()
	for _, event := range []string{"rare sites were counted", "rare sites were counted",
		"a window has ended", "a window has ended", "a window has ended"} {
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
	if most := s.Figures.SampledMost; most > 0 && s.Figures.HitTime > dear {
		// which is promised where counting does not show it
		if float64(recorded) > ran*most {
			t.Errorf("%d calls, at most %.3g of it, and it made %.3g", recorded, most, ran)
		}
		return
	}
	estimate := float64(recorded) / s.Figures.Sampled
	factor := 4.0 // little is recorded; without counting it would be some hundred
	if s.Figures.HitTime > dear {
		factor = 40
	}
	if estimate < ran/factor || estimate > factor*ran {
		t.Errorf("%d calls in %d windows, %.3g (at most %.3g) of it: %.3g calls, and it made %.3g",
			recorded, s.Figures.Windows, s.Figures.Sampled, s.Figures.SampledMost, estimate, ran)
	}
}

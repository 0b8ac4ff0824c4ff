package query

import (
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp"
	slots "wpptrace/compress/wpp/counted"
	"wpptrace/query/querytest"
)

// counts are those of routines that were counted in some slots of 10 ms, so many hits in each.
func counts(s *wpp.Snapshot, own time.Duration, hits map[rune]uint64) *slots.Counts {
	c := &slots.Counts{Own: own}
	for _, letter := range "abcdef" {
		n, some := hits[letter]
		if !some {
			continue
		}
		routine := s.Symbols[querytest.Letter(s, letter)].Routine
		site := slots.Site{Routine: routine, Addr: s.Routines[routine].Entry, Once: true}
		for i := range 8 {
			site.Slots = append(site.Slots, slots.Slot{Number: i + 1, Hits: n + uint64(i%2),
				Used: 10 * time.Millisecond})
		}
		c.Sites = append(c.Sites, site)
	}
	return c
}

// TestTotals: what ran in windows, and how often some of it ran between them, says how often all of
// it ran; of each routine that was counted by its own count.
func TestTotals(t *testing.T) {
	window := strings.Repeat("ab", 20) + strings.Repeat("c", 10) // c is rarer: it may differ outside
	s := inWindows(strings.Repeat(window+"|", 12))
	routine := func(letter rune) int { return s.Symbols[querytest.Letter(s, letter)].Routine }
	for _, c := range []struct {
		name     string
		hits     map[rune]uint64 // nil: nothing was counted
		sampled  [2]float64
		want     map[rune]float64 // 0: it is not known
		wide     float64
		subpaths float64
	}{
		// 240 of a in windows, 100 every 10 ms outside, for 1 s
		{"counted", map[rune]uint64{'a': 1000, 'b': 1000}, [2]float64{},
			map[rune]float64{'a': 100_290, 'b': 100_290, 'c': 0}, 1.25, 100_290},
		{"the rarest", map[rune]uint64{'c': 500}, [2]float64{},
			map[rune]float64{'a': 100_290, 'b': 100_290, 'c': 50_145}, 1.3, 100_290},
		{"they disagree", map[rune]uint64{'a': 1000, 'b': 1500}, [2]float64{},
			map[rune]float64{'a': 100_290, 'b': 150_290}, 1.1, 0},
		{"one", map[rune]uint64{'a': 1000}, [2]float64{},
			map[rune]float64{'a': 100_290, 'b': 100_290, 'c': 0}, 1.3, 100_290},
		{"by time", nil, [2]float64{0.09, 0.11}, map[rune]float64{'a': 2400, 'c': 1200}, 1.4, 2400},
		{"nothing is known", nil, [2]float64{0, 0.11}, map[rune]float64{'a': 0}, 1, 0},
		{"by time, and in vain", nil, [2]float64{0.001, 0.11}, map[rune]float64{'a': 0}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.Sections = nil
			if c.hits != nil {
				s.Sections = append(s.Sections, counts(s, time.Second, c.hits).Section())
			}
			s.Figures.SampledLeast, s.Figures.SampledMost = c.sampled[0], c.sampled[1]
			w, err := NewWhole(s)
			if err != nil {
				t.Fatal(err)
			}
			for letter, want := range c.want {
				total := w.Calls(s, routine(letter))
				if want == 0 {
					if total != nil {
						t.Errorf("%c: %+v", letter, *total)
					}
					continue
				}
				checkTotal(t, string(letter), total, want, c.wide)
				checkTotal(t, string(letter), w.Paths(routine(letter)), want, c.wide)
			}
			q := DefaultHotQuery()
			q.Metric = Executions
			r, err := Hot(s, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Subpaths {
				if querytest.Spell(s, p.Symbols) != "ab" {
					continue
				}
				if c.subpaths > 0 {
					checkTotal(t, "ab", p.InAll, c.subpaths, c.wide)
				} else if len(c.hits) == 0 && p.InAll != nil {
					t.Errorf("ab: %+v", *p.InAll)
				}
			}
		})
	}
	s.Figures.Sampled = 0
	if w, err := NewWhole(s); w != nil || err != nil || w.Calls(s, 0) != nil || w.Cost() != nil {
		t.Errorf("of a whole recording: %v, %v", w, err)
	}
}

// TestRounds: what is rarer than what is done for each request may be done once a round of an event
// loop, twice as often outside windows as there, also while it is counted: its interval holds that.
func TestRounds(t *testing.T) {
	const ofEach = "abdef"
	window := strings.Repeat(ofEach, 24) + strings.Repeat("c", 3)
	s := inWindows(strings.Repeat(window+"|", 12))
	hits := map[rune]uint64{'c': 120}
	for _, letter := range ofEach {
		hits[letter] = 960
	}
	s.Sections = append(s.Sections, counts(s, time.Second, hits).Section())
	w, err := NewWhole(s)
	if err != nil {
		t.Fatal(err)
	}
	routine := func(letter rune) int { return s.Symbols[querytest.Letter(s, letter)].Routine }
	for _, letter := range ofEach { // 288 in windows, and for 1 s 960.5 every 10 ms
		checkTotal(t, string(letter), w.Calls(s, routine(letter)), 96_338, 1.3)
	}
	for _, total := range []float64{12_086, 24_000} {
		checkTotal(t, "c", w.Calls(s, routine('c')), total, 8)
		checkTotal(t, "paths of c", w.Paths(routine('c')), total, 8)
	}
}

func checkTotal(t *testing.T, what string, total *Total, want, wide float64) {
	t.Helper()
	if total == nil || total.Least > want || total.Most < want || total.Most > wide*total.Least {
		t.Errorf("%s: %+v, want %v", what, total, want)
	}
}

// TestOneWindow: of what one window has seen, no total is known, but of a routine whose calls were
// counted.
func TestOneWindow(t *testing.T) {
	s := inWindows(strings.Repeat("ab", 100) + "|")
	s.Sections = append(s.Sections, counts(s, time.Second, map[rune]uint64{'a': 9}).Section())
	s.Figures.SampledLeast, s.Figures.SampledMost = 0.3, 0.4
	w, err := NewWhole(s)
	if err != nil {
		t.Fatal(err)
	}
	checkTotal(t, "a", w.Calls(s, s.Symbols[querytest.Letter(s, 'a')].Routine), 1050, 1.2)
	if x := w.Paths(s.Symbols[querytest.Letter(s, 'a')].Routine); x != nil {
		t.Errorf("%+v", *x)
	}
	if x := w.Calls(s, s.Symbols[querytest.Letter(s, 'b')].Routine); x != nil {
		t.Errorf("%+v", *x)
	}
	if x := w.Cost(); x != nil {
		t.Errorf("%+v", *x)
	}
}

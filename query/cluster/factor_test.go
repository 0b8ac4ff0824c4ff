package cluster

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// poisson draws from the Poisson distribution.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 200 {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, limit := 0, math.Exp(-mean)
	for p := r.Float64(); p > limit; p *= r.Float64() {
		n++
	}
	return float64(n)
}

// A program does so much in each window as a control counts there; what is asked for is some times
// as frequent.
type program struct {
	windows, slots int
	work           float64 // in a window: what the control counts there
	times          float64 // as often as the control
	own            bool    // it is the control's own routine: it runs as often, each time
	unlike         float64 // windows are unlike each other in how much they get to
	mix            float64 // and in what they do
	noise          float64 // of the time of a slot
}

// run draws windows and slots of a program, and estimates how often something ran in all.
func (p program) run(r *rand.Rand) (f Factor, truth float64) {
	const rate, long, total = 2.0, 2000.0, 1e6 // of the control, of a slot, of the run
	var in []Window
	for range p.windows {
		control := poisson(r, p.work*math.Exp(p.unlike*r.NormFloat64()))
		part := control * p.times
		if !p.own {
			part = poisson(r, control*p.times*math.Exp(p.mix*r.NormFloat64()-p.mix*p.mix/2))
		}
		in = append(in, Window{Part: part, Whole: control})
	}
	var things [][]Slot
	for range 3 { // the control, and two that are counted at other times
		var slots []Slot
		for i := range p.slots {
			hits := poisson(r, rate*long*(1+p.noise*r.NormFloat64()))
			slots = append(slots, Slot{i, hits, long})
		}
		things = append(things, slots)
	}
	return RatioOf(in).Times(Rates(things)[0]).Times(Certain(total)), p.times * rate * total
}

// TestTotalsHold: at least 93 % of the intervals of totals have the true one.
func TestTotalsHold(t *testing.T) {
	const runs, least = 2000, 0.93
	for i, p := range []program{
		{5, 3, 50, 1, true, 0.3, 0, 0.1},
		{10, 10, 70, 1, true, 0.3, 0, 0.1},
		{10, 10, 70, 5, false, 0.3, 0, 0.1},
		{10, 10, 70, 0.2, false, 0.3, 0.3, 0.1},
		{15, 10, 300, 3, false, 0.5, 0.5, 0.2},
		{15, 4, 10, 2, false, 0.5, 0.3, 0.1},
		{40, 20, 20, 0.1, false, 0.7, 0.3, 0.05},
		{200, 50, 5, 4, false, 0.5, 0.5, 0.05},
	} {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		held, width, known := 0, 0.0, 0
		for range runs {
			f, truth := p.run(r)
			if !f.IsKnown() { // nothing is said of it
				continue
			}
			known++
			lo, hi := f.Interval()
			if lo <= truth && truth <= hi {
				held++
			}
			width += math.Log(hi / lo)
		}
		t.Logf("%+v: %.1f %% of %d intervals hold, %.2f wide", p, 100*float64(held)/float64(known),
			known, math.Exp(width/float64(known)))
		if known < runs*9/10 || float64(held) < least*float64(known) {
			t.Errorf("%+v: %d of %d intervals hold", p, held, known)
		}
	}
}

// TestTotalsAreNarrow: a service that does the same all the time has totals of a routine that was
// counted within a factor of 1.5.
func TestTotalsAreNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		f, _ := program{12, 8, 70, 1, true, 0.3, 0, 0.08}.run(r)
		if lo, hi := f.Interval(); hi/lo > 1.5 {
			t.Fatalf("%v-%v", lo, hi)
		}
	}
}

// TestSpreadHolds: of several factors that differ, one more lies in the interval.
func TestSpreadHolds(t *testing.T) {
	const runs = 2000
	for _, n := range []int{3, 5, 20} {
		r := rand.New(rand.NewPCG(4, uint64(n)))
		held, mean := 0, 0
		for range runs {
			var list []Factor
			var weights []float64
			draw := func() float64 { return 5 * math.Exp(0.3*r.NormFloat64()) }
			for range n {
				list = append(list, Certain(draw()))
				weights = append(weights, 0.5+r.Float64())
			}
			if lo, hi := Spread(list, weights).Interval(); lo <= 5 && 5 <= hi {
				held++
			}
			x := draw()
			if lo, hi := Spread(list, weights).Interval(); lo <= x && x <= hi {
				held++
			}
			if lo, hi := Mean(list, weights).Interval(); lo <= 5 && 5 <= hi {
				mean++
			}
		}
		t.Logf("%d: %d of %d, the mean %d of %d", n, held, 2*runs, mean, runs)
		if held < 2*runs*93/100 || mean < runs*93/100 {
			t.Errorf("%d: %d of %d, the mean %d of %d", n, held, 2*runs, mean, runs)
		}
	}
}

// TestClock: what was counted in many slots and hardly came is not what the others are measured by.
func TestClock(t *testing.T) {
	var never, often, other []Slot
	for i := range 12 {
		never = append(never, Slot{i, float64(i / 11), 1e6})
		if i > 2 {
			often = append(often, Slot{i, float64(1000 + i), 1e6})
		}
		if i > 6 {
			other = append(other, Slot{i, float64(500 + i%3), 1e6})
		}
	}
	rates := Rates([][]Slot{never, often, other})
	for i, want := range []float64{1e-3, 5e-4} {
		if lo, hi := rates[i+1].Interval(); lo > 1.02*want || hi < want || hi > 1.2*lo {
			t.Errorf("%v-%v, want %v", lo, hi, want)
		}
	}
}

// TestAgree: factors that differ by chance agree nearly always, and those of a server that does in
// windows four times as much at once as outside do not.
func TestAgree(t *testing.T) {
	const runs = 1000
	r := rand.New(rand.NewPCG(6, 6))
	same, others := 0, 0
	for range runs {
		var list []Factor
		for range 8 {
			list = append(list, Doubtful(5*math.Exp(0.1*r.NormFloat64()), 0.1))
		}
		if Agree(list) {
			same++
		}
		list[0].Value *= 4
		if Agree(list) {
			others++
		}
	}
	if same < runs*93/100 || others > 0 {
		t.Errorf("%d that do agree, and %d that do not", same, others)
	}
	if Agree([]Factor{Certain(1), Doubtful(1, 0.1), Doubtful(1, 0.1), Doubtful(1, 0.1), {}}) {
		t.Error("three agree")
	}
}

// TestOdd: what is left out is what differs, unless so much does that nobody knows who is right.
func TestOdd(t *testing.T) {
	for _, c := range []struct {
		values []float64
		odd    []int
	}{
		{nil, nil},
		{[]float64{1, 1, 1, 1, 1, 1}, nil},
		{[]float64{1, 9, 1, 1, 1, 1}, []int{1}},
		{[]float64{1, 9, 1, 1, 1, 0.1}, []int{1, 5}},
		{[]float64{1, 9, 1, 9, 1, 9}, nil},
		{[]float64{1, 9, 1}, nil}, // too few
	} {
		var list []Factor
		for _, v := range c.values {
			list = append(list, Doubtful(v, 0.1))
		}
		if got := Odd(list); !slices.Equal(got, c.odd) {
			t.Errorf("%v: %v, want %v", c.values, got, c.odd)
		}
	}
}

// TestFactorsNotKnown: what nothing is known of has no interval.
func TestFactorsNotKnown(t *testing.T) {
	for _, c := range []struct {
		name string
		f    Factor
	}{
		{"no windows", RatioOf(nil)},
		{"one", RatioOf([]Window{{10, 10}})},
		{"one with any of the whole", RatioOf([]Window{{10, 10}, {3, 0}})},
		{"none with any of the part", RatioOf([]Window{{0, 10}, {0, 3}})},
		{"no slots", Rates([][]Slot{nil})[0]},
		{"one slot", Rates([][]Slot{{{1, 10, 100}}})[0]},
		{"nothing came", Rates([][]Slot{{{1, 0, 100}, {2, 0, 100}}})[0]},
		{"one of a kind", Spread([]Factor{Certain(1)}, []float64{1})},
		{"of what is not known", RatioOf(nil).Times(Certain(2))},
	} {
		if lo, hi := c.f.Interval(); c.f.IsKnown() || lo != 0 || !math.IsInf(hi, 1) {
			t.Errorf("%s: %+v", c.name, c.f)
		}
	}
	if lo, hi := Certain(2).Interval(); lo != 2 || hi != 2 {
		t.Errorf("certain: %v-%v", lo, hi)
	}
	if lo, hi := Doubtful(2, 0.1).Interval(); lo < 1.6 || hi > 2.5 || lo > 1.7 || hi < 2.4 {
		t.Errorf("doubtful: %v-%v", lo, hi)
	}
}

package cluster

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// draw draws windows of a program whose phases last for some of the time: in each a window has a
// share of its own, and does as much as it gets to.
func draw(r *rand.Rand, n int, share, spread, unlike float64) (list []Window) {
	for range n {
		whole := 1000 * math.Exp(unlike*r.NormFloat64())
		// Beta with mean share: between-window variance, as of phases.
		x := gamma(r, share*spread)
		y := gamma(r, (1-share)*spread)
		list = append(list, Window{Part: whole * x / (x + y), Whole: whole})
	}
	return list
}

// gamma draws from the gamma distribution (Marsaglia and Tsang 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// TestIntervalsHold: of clustered data whose true shares are known, at least 90 % of the intervals
// have the true difference.
func TestIntervalsHold(t *testing.T) {
	const runs, least = 2000, 0.90
	for _, c := range []struct {
		windows               int
		before, after, spread float64 // where spread is small, phases are unlike each other
		unlike                float64 // windows, in what they get to
	}{
		{3, 0.3, 0.3, 20, 0.2},
		{5, 0.3, 0.4, 5, 0.5},
		{10, 0.3, 0.3, 5, 0.5},
		{15, 0.1, 0.1, 10, 0.5},
		{15, 0.1, 0.2, 10, 0.5},
		{15, 0.5, 0.5, 1, 1},
		{15, 0.02, 0.02, 20, 0.5},
		{15, 0.02, 0.08, 20, 0.5},
		{40, 0.05, 0.2, 20, 0.7},
		{60, 0.02, 0.04, 10, 0.5},
		{60, 0.02, 0.02, 3, 0.5},
		{60, 0.02, 0.1, 3, 0.5},
		{200, 0.01, 0.02, 50, 0.5},
	} {
		r := rand.New(rand.NewPCG(1, uint64(c.windows)))
		held := 0
		for range runs {
			d, known := Compare(Of(draw(r, c.windows, c.before, c.spread, c.unlike)),
				Of(draw(r, c.windows, c.after, c.spread, c.unlike)))
			if !known {
				t.Fatal("not known")
			}
			if d.Lo <= c.after-c.before && c.after-c.before <= d.Hi {
				held++
			}
			if (d.P < 1-Level) != (d.Lo > 0 || d.Hi < 0) {
				t.Fatalf("interval and chance disagree: %+v", d)
			}
		}
		t.Logf("%+v: %.1f %% of intervals hold", c, 100*float64(held)/runs)
		if float64(held) < least*runs {
			t.Errorf("%+v: %d of %d intervals hold", c, held, runs)
		}
	}
}

// TestDifferencesAreFound: a share that doubles is not hidden.
func TestDifferencesAreFound(t *testing.T) {
	const runs = 500
	r := rand.New(rand.NewPCG(2, 2))
	found := 0
	for range runs {
		a, b := Of(draw(r, 15, 0.1, 20, 0.5)), Of(draw(r, 15, 0.2, 20, 0.5))
		if d, _ := Compare(a, b); d.P < 1-Level && d.Lo > 0 {
			found++
		}
	}
	if found < runs*8/10 {
		t.Errorf("%d of %d are found", found, runs)
	}
}

func TestFewWindows(t *testing.T) {
	for _, c := range []struct {
		windows []Window
		known   bool
		value   float64
	}{
		{nil, false, 0},
		{[]Window{{}}, false, 0},
		{[]Window{{1, 2}}, false, 0.5},
		{[]Window{{1, 2}, {}}, false, 0.5},
		{[]Window{{1, 2}, {1, 2}}, true, 0.5},
	} {
		s := Of(c.windows)
		if s.IsKnown() != c.known || s.Value != c.value {
			t.Errorf("%v: %+v", c.windows, s)
		}
		if _, known := Compare(s, Exact(1)); known != c.known {
			t.Errorf("%v: compared %v", c.windows, known)
		}
	}
	if d, known := Compare(Exact(0.25), Exact(0.5)); !known || d.P != 0 || d.Lo != 0.25 ||
		d.Hi != 0.25 {
		t.Errorf("exact: %+v", d)
	}
	if d, known := Compare(Exact(0.25), Exact(0.25)); !known || d.P != 1 {
		t.Errorf("exact and the same: %+v", d)
	}
}

// TestSignificant: the worked example of Benjamini and Hochberg 1995, section 3.2: of 15 tests the
// four with the smallest chances are selected.
func TestSignificant(t *testing.T) {
	p := []float64{.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262,
		.5719, .6528, .7590, 1}
	want := make([]bool, len(p))
	for i := range 4 {
		want[i] = true
	}
	if got := Significant(p); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	slices.Reverse(p)
	slices.Reverse(want)
	if got := Significant(p); !slices.Equal(got, want) {
		t.Errorf("reversed: %v", got)
	}
	if got := Significant(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}

// TestStudent: the table of Abramowitz and Stegun, 26.10, of two-sided 95 %.
func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 14: 2.145,
		30: 2.042, 120: 1.980, 1e6: 1.960} {
		if got := distance(0.05, freedom); math.Abs(got-want) > 0.0006 {
			t.Errorf("%v degrees: %v, want %v", freedom, got, want)
		}
		if got := chance(-want, freedom); math.Abs(got-0.05) > 0.0001 {
			t.Errorf("%v degrees: chance %v", freedom, got)
		}
	}
}

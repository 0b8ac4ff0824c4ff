package samples

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestIntervalsHold: of all the numbers of samples that may come up of a share, those whose
// interval has the share in it come up 95 times of 100.
func TestIntervalsHold(t *testing.T) {
	worst := 1.0
	for _, n := range []int{1, 2, 5, 10, 30, 100, 300, 1000, 3000} {
		for p := 0.0005; p < 1; p += 0.0037 {
			holds := 0.0
			for k := range n + 1 {
				lo, hi := Share{uint64(k), uint64(n)}.Interval()
				if lo <= p && p <= hi {
					holds += binomial(n, k, p)
				}
			}
			if worst = min(worst, holds); holds < 0.945 {
				t.Errorf(
					"%d samples, share %.4f: the interval holds in %.4f of all cases",
					n,
					p,
					holds,
				)
			}
		}
	}
	t.Logf("at worst: %.4f", worst)
}

// binomial is the probability of k of n.
func binomial(n, k int, p float64) float64 {
	log := func(x int) float64 {
		v, _ := math.Lgamma(float64(x) + 1)
		return v
	}
	return math.Exp(log(n) - log(k) - log(n-k) + float64(k)*math.Log(p) +
		float64(n-k)*math.Log(1-p))
}

// TestIntervalsHoldOfPrograms: programs are simulated that go through phases of chance lengths, and
// are sampled with a period; the share that each phase had is in its interval.
func TestIntervalsHoldOfPrograms(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []float64{0.01, 0.3, 1, 3, 50} { // of a phase, in periods
		const programs, samples = 400, 1000
		hold := 0
		for range programs {
			share := random.Float64()
			in, counted, at, next := 0.0, uint64(0), 0.0, random.Float64()
			for at < samples {
				inside := random.Float64() < share
				end := min(at+random.ExpFloat64()*mean, samples)
				if inside {
					in += end - at
				}
				for ; next < end; next++ {
					if inside {
						counted++
					}
				}
				at = end
			}
			if lo, hi := (Share{counted, samples}).Interval(); lo <= in/at && in/at <= hi {
				hold++
			}
		}
		if hold < programs*94/100 {
			t.Errorf("phases of %g periods: the interval holds in %d of %d", mean, hold, programs)
		}
	}
}

func TestIntervalOf(t *testing.T) {
	for _, c := range []struct {
		share  Share
		lo, hi float64
	}{
		{Share{}, 0, 1},
		{Share{0, 1}, 0, 0.9454},
		{Share{1, 1}, 0.0546, 1},
		// Newcombe 1998, table I
		{Share{81, 263}, 0.2535, 0.3682},
		{Share{15, 148}, 0.0598, 0.1644},
		{Share{0, 20}, 0, 0.2005},
		{Share{1, 29}, 0.0018, 0.1963},
	} {
		lo, hi := c.share.Interval()
		if math.Abs(lo-c.lo) > 0.0001 || math.Abs(hi-c.hi) > 0.0001 {
			t.Errorf("%v: %.4f to %.4f, want %.4f to %.4f", c.share, lo, hi, c.lo, c.hi)
		}
	}
}

package samples

import "math"

// A Share is so many samples of so many.
type Share struct{ Samples, Of uint64 }

// Value is the share, 0 to 1; 0 of none.
func (s Share) Value() float64 {
	if s.Of == 0 {
		return 0
	}
	return float64(s.Samples) / float64(s.Of)
}

// Interval is where the share of the time is, 95 times of 100 at least: Wilson's interval with a
// correction for continuity (Newcombe 1998, method 4). It takes samples for independent of each
// other. Where a program stays in one place for longer than a period, which they then are not, it
// is wider than need be.
func (s Share) Interval() (lo, hi float64) {
	if s.Of == 0 {
		return 0, 1
	}
	const z = 1.959964
	n, p := float64(s.Of), s.Value()
	q := 1 - p
	middle, width := 2*n*p+z*z, 2*(n+z*z)
	lo, hi = 0, 1
	if s.Samples > 0 {
		lo = max(0, (middle-1-z*math.Sqrt(z*z-2-1/n+4*p*(n*q+1)))/width)
	}
	if s.Samples < s.Of {
		hi = min(1, (middle+1+z*math.Sqrt(z*z+2-1/n+4*p*(n*q-1)))/width)
	}
	return lo, hi
}

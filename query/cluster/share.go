package cluster

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Level is what intervals hold with: the true value lies in so many of them.
const Level = 0.95

// Least is how many windows there must be for an interval.
const Least = 2

// Few is how many windows are so few that an interval is wide, and holds where they are alike only.
const Few = 8

// A Window is a cluster: the cost of what is asked about, and of all that ran in it. Part is at
// most Whole.
type Window struct{ Part, Whole float64 }

// A Share is an estimate of a share of all that ran.
type Share struct {
	Value    float64
	variance float64
	freedom  float64 // degrees; 0: nothing is known of the variance; infinite: there is none
}

// Exact returns a share of a run all of which was traced.
func Exact(value float64) Share { return Share{Value: value, freedom: math.Inf(1)} }

// Of estimates a share from windows. Of fewer than Least in which anything ran its variance is not
// known. It takes time linear in the windows.
func Of(windows []Window) Share {
	var part, whole, parts, wholes float64 // parts, wholes: of squares
	n := 0
	for _, w := range windows {
		if w.Whole > 0 {
			part, whole, n = part+w.Part, whole+w.Whole, n+1
			parts, wholes = parts+w.Part*w.Part, wholes+w.Whole*w.Whole
		}
	}
	if n == 0 {
		return Share{}
	}
	s := Share{Value: part / whole}
	if n < Least {
		return s
	}
	var sum, squares float64 // of the changes of the share where a window is left out
	for _, w := range windows {
		if w.Whole > 0 {
			change := (s.Value*w.Whole - w.Part) / (whole - w.Whole)
			sum, squares = sum+change, squares+change*change
		}
	}
	k := float64(n)
	s.variance = (k - 1) / k * max(0, squares-sum*sum/k)
	s.freedom = alike(whole, wholes)
	if part > 0 {
		s.freedom = min(s.freedom, alike(part, parts))
	}
	s.freedom = max(1, s.freedom-1)
	return s
}

// alike is how many like ones have such a sum and such a sum of squares.
func alike(sum, squares float64) float64 { return sum * sum / squares }

// IsKnown reports whether it is known how sure the share is.
func (s Share) IsKnown() bool { return s.freedom > 0 }

// halfWidth is that of an interval around what has this variance.
func halfWidth(variance, freedom float64) float64 {
	if variance == 0 {
		return 0
	}
	return math.Sqrt(variance) * distance(1-Level, freedom)
}

// chance is how likely what has Student's distribution is so far from 0, or farther, on any side:
// the regularized incomplete beta function (Abramowitz and Stegun, 26.7.1 and 26.5.27).
func chance(t, freedom float64) float64 {
	return mathext.RegIncBeta(freedom/2, 0.5, freedom/(freedom+t*t))
}

// distance is how far from 0 that is with a chance: the inverse of chance.
func distance(chance, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, chance)
	return math.Sqrt(freedom * (1 - x) / x)
}

// A Difference is by how much a share is larger than another.
type Difference struct {
	Value  float64
	Lo, Hi float64 // where the true difference lies, with Level
	// P is the chance that shares which are the same seem to differ by as much, or more.
	P float64
}

// Compare compares two shares; false: it is not known how sure one of them is.
func Compare(before, after Share) (d Difference, known bool) {
	d.Value = after.Value - before.Value
	if !before.IsKnown() || !after.IsKnown() {
		return d, false
	}
	variance := before.variance + after.variance
	if variance == 0 {
		d.Lo, d.Hi = d.Value, d.Value
		if d.Value == 0 {
			d.P = 1
		}
		return d, true
	}
	freedom := variance * variance /
		(square(before.variance)/before.freedom + square(after.variance)/after.freedom)
	half := halfWidth(variance, freedom)
	d.Lo, d.Hi = d.Value-half, d.Value+half
	d.P = chance(d.Value/math.Sqrt(variance), freedom)
	return d, true
}

func square(x float64) float64 { return x * x }

// Significant selects, of tests with these chances, those of which at most 1 - Level are so by
// chance, on average. The result has an element for each.
func Significant(p []float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	selected := make([]bool, len(p))
	for k := len(order) - 1; k >= 0; k-- {
		if p[order[k]] <= (1-Level)*float64(k+1)/float64(len(p)) {
			for _, i := range order[:k+1] {
				selected[i] = true
			}
			break
		}
	}
	return selected
}

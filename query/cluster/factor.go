package cluster

import "math"

// A Factor is a ratio of two sums, one over the other, by which a number is multiplied to estimate
// another. How sure it is follows from the clusters that the sums are of. Errors of factors that
// are multiplied add up by their logarithms, so that an interval is as many times above the value
// as it is below.
type Factor struct {
	Value    float64
	variance float64 // of its logarithm
	freedom  float64 // degrees; 0: nothing is known of the variance; infinite: there is none
}

// Certain is a factor that is known.
func Certain(value float64) Factor { return Factor{Value: value, freedom: math.Inf(1)} }

// Doubtful is a factor that is off by a part of it, the standard deviation, which is known.
func Doubtful(value, off float64) Factor {
	return Factor{Value: value, variance: off * off, freedom: math.Inf(1)}
}

// RatioOf is the sum of the parts over that of the wholes, which need not contain them: both are
// counts. Of clusters in which few are counted it is in doubt, however alike they are. It takes
// time linear in the windows.
func RatioOf(windows []Window) Factor {
	var part, whole, parts, wholes float64 // parts, wholes: of squares
	n := 0
	for _, w := range windows {
		if w.Whole > 0 || w.Part > 0 {
			part, whole, n = part+w.Part, whole+w.Whole, n+1
			parts, wholes = parts+w.Part*w.Part, wholes+w.Whole*w.Whole
		}
	}
	if whole == 0 || part == 0 {
		return Factor{}
	}
	f := Factor{Value: part / whole}
	if n < Least {
		return f
	}
	var sum, squares float64 // of the changes of the ratio where a window is left out
	for _, w := range windows {
		if whole == w.Whole && w.Whole > 0 {
			return f // all that is known is of this one
		}
		if w.Whole > 0 || w.Part > 0 {
			change := (w.Whole - w.Part/f.Value) / (whole - w.Whole)
			sum, squares = sum+change, squares+change*change
		}
	}
	k := float64(n)
	f.variance = (k-1)/k*max(0, squares-sum*sum/k) + 1/(whole*whole)
	f.freedom = max(1, min(alike(whole, wholes), alike(part, parts))-1)
	return f
}

// IsKnown reports whether it is known how sure the factor is.
func (f Factor) IsKnown() bool { return f.freedom > 0 && f.Value > 0 }

// Surer reports whether a factor is known better than another one.
func (f Factor) Surer(than Factor) bool {
	return f.IsKnown() && (!than.IsKnown() || f.wide() < than.wide())
}

// wide is the logarithm of how many times the end of the interval is the value.
func (f Factor) wide() float64 { return math.Sqrt(f.variance) * f.distance() }

// Doubt is 1, as much in doubt as the factor.
func (f Factor) Doubt() Factor {
	f.Value = 1
	return f
}

// Times is the product of two factors whose errors have nothing to do with each other; the degrees
// of freedom are those of Welch and Satterthwaite.
func (f Factor) Times(g Factor) Factor {
	p := Factor{Value: f.Value * g.Value, variance: f.variance + g.variance}
	switch {
	case !f.IsKnown() || !g.IsKnown():
		p.freedom = 0
	case p.variance == 0:
		p.freedom = math.Inf(1)
	default:
		p.freedom = square(p.variance) /
			(square(f.variance)/f.freedom + square(g.variance)/g.freedom)
	}
	return p
}

// Interval is where the true factor lies, with Level. It means nothing where that is not known.
func (f Factor) Interval() (lo, hi float64) {
	if f.variance == 0 {
		return f.Value, f.Value
	}
	times := math.Exp(min(f.wide(), mostLog))
	return f.Value / times, f.Value * times
}

const mostLog = 300 // of what a float64 holds

// distance is that of the ends of the interval, in standard deviations.
func (f Factor) distance() float64 {
	if math.IsInf(f.freedom, 1) || f.freedom > manyDegrees {
		return distance(1-Level, manyDegrees)
	}
	return distance(1-Level, f.freedom)
}

// manyDegrees of freedom are as good as infinitely many.
const manyDegrees = 1e4

// A Slot is a stretch of time in which something was counted.
type Slot struct {
	Number int // slots of the same number are of the same time
	Hits   float64
	Time   float64
}

// Rates are how often several things happened in a time, each counted in some slots. What makes one
// slot differ from another is as a rule the same for all of them, such as what else the program
// did, and how well its time is known: so a thing that was counted in few slots has the doubt of
// the others. One whose slots differ by more has its own. The result has an element for each.
func Rates(things [][]Slot) []Factor {
	rates := make([]Factor, len(things))
	var squares, degrees float64
	numbers := map[int]bool{}
	for i, slots := range things {
		var hits, time float64
		for _, s := range slots {
			hits, time = hits+s.Hits, time+s.Time
		}
		if hits == 0 || time == 0 {
			continue
		}
		rates[i].Value = hits / time
		mean := time / float64(len(slots))
		for _, s := range slots {
			expected := rates[i].Value * s.Time
			if expected == 0 {
				continue
			}
			off := s.Hits/expected - 1
			squares += (off*off - 1/expected) * s.Time / mean
			numbers[s.Number] = true
		}
		degrees += float64(len(slots) - 1)
	}
	if degrees = min(degrees, float64(len(numbers)-1)); degrees < 1 {
		return rates
	}
	all := float64(0)
	for _, slots := range things {
		all += float64(max(len(slots)-1, 0))
	}
	common := max(0, squares/all)
	for i, slots := range things {
		if rates[i].Value == 0 {
			continue
		}
		var hits float64
		clusters := make([]Window, 0, len(slots))
		for _, s := range slots {
			hits += s.Hits
			clusters = append(clusters, Window{Part: s.Hits, Whole: s.Time})
		}
		rates[i].variance = common/float64(len(slots)) + 1/hits
		rates[i].freedom = degrees
		if own := RatioOf(clusters); own.IsKnown() && own.variance > rates[i].variance {
			rates[i].variance, rates[i].freedom = own.variance, max(own.freedom, 1)
		}
	}
	return rates
}

// Spread is a factor of which only some others of its kind are known: their mean, as much in doubt
// as they differ. weights say how much each is known by.
func Spread(others []Factor, weights []float64) Factor {
	var all, squares, sum float64
	for i, f := range others {
		if f.Value > 0 && weights[i] > 0 {
			all, squares = all+weights[i], squares+square(weights[i])
			sum += weights[i] * math.Log(f.Value)
		}
	}
	if all == 0 {
		return Factor{}
	}
	like := alike(all, squares)
	mean, off := sum/all, 0.0
	for i, f := range others {
		if f.Value > 0 && weights[i] > 0 {
			off += weights[i] / all * square(math.Log(f.Value)-mean)
		}
	}
	f := Factor{Value: math.Exp(mean)}
	if like < 2 {
		return f
	}
	f.variance = off * like / (like - 1) * (1 + 1/like)
	f.freedom = like - 1
	return f
}

// Mean is the mean of which Spread says how far one more is from it: less in doubt, for it is of
// all of them.
func Mean(others []Factor, weights []float64) Factor {
	f := Spread(others, weights)
	if f.freedom > 0 && !math.IsInf(f.freedom, 1) {
		f.variance /= f.freedom + 2 // like + 1
	}
	return f
}

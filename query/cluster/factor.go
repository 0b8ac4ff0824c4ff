package cluster

import (
	"cmp"
	"math"
	"slices"
)

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
// counts, or a whole is a time, which may seem to be below 0 in a cluster. Of clusters in which
// few are counted it is in doubt, however alike they are. It takes time linear in the windows.
func RatioOf(windows []Window) Factor {
	var part, whole, parts, wholes float64 // parts, wholes: of squares
	n := 0
	for _, w := range windows {
		if w.Whole != 0 || w.Part > 0 {
			part, whole, n = part+w.Part, whole+w.Whole, n+1
			parts, wholes = parts+w.Part*w.Part, wholes+w.Whole*w.Whole
		}
	}
	if whole <= 0 || part <= 0 {
		return Factor{}
	}
	f := Factor{Value: part / whole}
	if n < Least {
		return f
	}
	var sum, squares float64 // of the changes of the ratio where a window is left out
	for _, w := range windows {
		if whole <= w.Whole {
			return f // all that is known is of this one
		}
		if w.Whole != 0 || w.Part > 0 {
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

// Varies reports whether the factor is known no better than by that variance of its logarithm.
func (f Factor) Varies(by float64) bool { return !f.IsKnown() || f.variance > by }

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

// Interval is where the true factor lies, with Level: anywhere above 0, where nothing is known.
func (f Factor) Interval() (lo, hi float64) {
	switch {
	case !f.IsKnown():
		return 0, math.Inf(1)
	case f.variance == 0:
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

// Rates are how often several things happened in a time, each counted in some slots. Slots
// differ, for all things alike, in what else the program did, and in how well their times are
// known. So the thing that happened often enough in most slots is the clock: the time of a slot
// in which it was counted, too, is how often it happened there. How much slots differ by that
// clock is taken from all things together, the median, for one that was counted in few shows
// little of it; one whose slots differ by more has its own doubt. The result has an element for
// each.
func Rates(things [][]Slot) []Factor {
	rates := make([]Factor, len(things))
	if len(things) == 0 {
		return rates
	}
	clock := 0
	for i, slots := range things {
		if tells(slots) > tells(things[clock]) {
			clock = i
		}
	}
	base := RatioOf(windowsOf(things[clock]))
	if !base.IsKnown() {
		return rates
	}
	times := map[int]float64{}
	for _, s := range things[clock] {
		times[s.Number] = s.Hits / base.Value
	}
	list := make([][]Window, len(things))
	var d deviations
	for i, slots := range things {
		for _, s := range slots {
			if time := times[s.Number]; time > 0 {
				s.Time = time
			}
			list[i] = append(list[i], Window{Part: s.Hits, Whole: s.Time})
		}
		if i != clock {
			d.add(list[i], tells(slots)-1)
		}
	}
	for i := range list {
		rates[i] = d.rate(list[i]).Times(base.Doubt())
	}
	rates[clock] = base
	return rates
}

// tells is in about how many slots a thing happened so often that it says how long they were.
func tells(slots []Slot) (n float64) {
	const often = 20
	for _, s := range slots {
		n += s.Hits / (s.Hits + often)
	}
	return n
}

func windowsOf(slots []Slot) (list []Window) {
	for _, s := range slots {
		list = append(list, Window{Part: s.Hits, Whole: s.Time})
	}
	return list
}

// deviations are, of each of some things, how far its slots are from its mean, relative to that,
// beyond what chance makes of so many hits.
type deviations struct{ list []deviation }

type deviation struct{ square, degrees float64 } // on average of the degrees

// add adds a thing that says so much of them.
func (d *deviations) add(slots []Window, says float64) {
	hits, time := sums(slots)
	if hits == 0 || time <= 0 || says <= 0 {
		return
	}
	mean, squares, degrees := time/float64(len(slots)), 0.0, float64(len(slots)-1)
	for _, s := range slots {
		if expected := hits / time * s.Whole; expected > 0 {
			squares += (square(s.Part/expected-1) - 1/expected) * s.Whole / mean
		}
	}
	// the median of chi-squared by its degrees (Wilson and Hilferty 1931)
	median := math.Pow(1-2/(9*degrees), 3)
	d.list = append(d.list, deviation{max(0, squares) / degrees / median, says})
}

// usual is the median: some things come all at once, now and then, and say nothing of others. 0
// degrees: nothing is known.
func (d *deviations) usual() (x deviation) {
	all := 0.0
	for _, y := range d.list {
		all += y.degrees
	}
	slices.SortFunc(d.list, func(a, b deviation) int { return cmp.Compare(a.square, b.square) })
	below := 0.0
	for _, y := range d.list {
		if below += y.degrees; below >= all/2 {
			return deviation{y.square, all / 2}
		}
	}
	return x
}

func (d *deviations) rate(slots []Window) (f Factor) {
	hits, time := sums(slots)
	if hits == 0 || time <= 0 {
		return f
	}
	f.Value = hits / time
	if x := d.usual(); x.degrees >= 1 {
		f.variance = x.square/float64(len(slots)) + 1/hits
		f.freedom = x.degrees
	}
	if own := RatioOf(slots); own.IsKnown() && (own.variance > f.variance || !f.IsKnown()) {
		f.variance, f.freedom = own.variance, own.freedom
	}
	return f
}

func sums(slots []Window) (hits, time float64) {
	for _, s := range slots {
		hits, time = hits+s.Part, time+s.Whole
	}
	return hits, time
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

// Agree reports whether some factors, at least four, may be one and the same, for all that is known
// of each: Cochran's test of homogeneity (The Combination of Estimates from Different Experiments,
// Biometrics 10, 1954), at two standard deviations.
func Agree(list []Factor) bool {
	const least = 4
	n, q := 0, 0.0
	for _, x := range apart(list) {
		if x >= 0 {
			n, q = n+1, q+x
		}
	}
	degrees := float64(n - 1)
	return n >= least && q <= degrees+2*math.Sqrt(2*degrees)
}

// apart is how far each factor is from their mean, squared, in its own standard deviations; -1:
// nothing is known of it, or it is certain.
func apart(list []Factor) []float64 {
	var sum, weights float64
	known := func(f Factor) bool { return f.IsKnown() && f.variance > 0 }
	for _, f := range list {
		if known(f) {
			sum, weights = sum+math.Log(f.Value)/f.variance, weights+1/f.variance
		}
	}
	far := make([]float64, len(list))
	for i, f := range list {
		if far[i] = -1; known(f) {
			far[i] = square(math.Log(f.Value)-sum/weights) / f.variance
		}
	}
	return far
}

// Odd are the indices of the factors, in order and a third of them at most, without which the
// others agree; none: they all do, or whichever are left out.
func Odd(list []Factor) (odd []int) {
	const most = 1. / 3
	rest := slices.Clone(list)
	for !Agree(rest) {
		if float64(len(odd)+1) > most*float64(len(list)) {
			return nil
		}
		far := apart(rest)
		i := slices.Index(far, slices.Max(far))
		odd, rest[i] = append(odd, i), Factor{}
	}
	slices.Sort(odd)
	return odd
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

package query

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/callees"
	slots "wpptrace/compress/wpp/counted"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/faults"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/samples"
	"wpptrace/compress/wpp/variables"
	"wpptrace/compress/wpp/windows"
	"wpptrace/query/cluster"
)

// Sections are the kinds that questions read, where a snapshot has them.
func Sections() []wpp.SectionKind {
	return []wpp.SectionKind{samples.Kind, windows.Kind, slots.Kind, pathprofile.Kind,
		overlapped.SectionKind, entries.Kind, wet.CodeKind, wet.HeadKind, wet.LogKind,
		wet.CountsKind, wet.ThreadsKind, wet.CommonKind, variables.Kind,
		callees.Kind, faults.Kind}
}

// A Total is an estimate of how much there was of something in the whole run, of which windows have
// seen a part: it lies between Least and Most, 95 times of 100.
type Total struct{ Value, Least, Most float64 }

// mostWide is how many times Least Most may be. What is known no better is not known.
const mostWide = 10

// mostInWhole is how many clusters of windows a Whole looks at, of each of which it keeps how often
// each symbol ran.
const mostInWhole = 64

// A Whole estimates what the whole run of a recording in windows was, from these and from what was
// counted between them. It is read-only.
type Whole struct {
	counts   []symbolCounts // by cluster of windows
	cost     []float64      // of all that ran, by cluster
	of       map[int][]uint32
	clusters *clustered
	controls map[int]*controlled // by routine
	together []float64           // hits of all controls, by cluster
	// what ran in no window for each of what ran in one, of all together,
	others cluster.Factor
	// that is of each routine, too: by the CPU time in windows, or as far as is known all that was
	// counted runs as often in windows as outside
	ofEach bool
	calls  map[int]float64 // in windows, by routine
	usual  float64         // how many calls what is done for each request has in them; 0: not known
}

type symbolCounts []uint64

// A controlled routine is one of which a block was counted.
type controlled struct {
	windows []float64 // how often that ran in windows, by cluster
	between cluster.Factor
	once    bool // it runs once whenever the routine is called
}

// NewWhole estimates; nil: a recording is not in windows, or nothing is known but these. It takes
// time and memory linear in the grammars, and in the alphabet for each of some clusters of windows.
func NewWhole(s *wpp.Snapshot) (w *Whole, err error) {
	defer wpp.Recover(&err)
	if !s.Figures.IsSampled() {
		return nil, nil
	}
	c, err := clusterOf(s)
	if err != nil { // without clusters no interval is known
		return nil, nil //nolint:nilerr
	}
	w = &Whole{of: map[int][]uint32{}, clusters: c, controls: map[int]*controlled{}}
	for sym := range s.Symbols {
		if p := &s.Symbols[sym]; !p.IsMark {
			w.of[p.Routine] = append(w.of[p.Routine], uint32(sym))
		}
	}
	w.count(s)
	w.calls = w.callsIn(s)
	counts, err := slots.Of(s)
	if err != nil {
		return nil, err
	}
	if counts != nil {
		w.control(s, counts)
	}
	if !w.others.IsKnown() && s.Figures.SampledLeast > 0 {
		w.takeTime(&s.Figures)
	}
	return w, nil
}

// count counts symbols by cluster, and what they cost.
func (w *Whole) count(s *wpp.Snapshot) {
	costs := symbolCosts(s, NaturalMetric(s))
	size := (len(w.clusters.clusters) + mostInWhole - 1) / mostInWhole
	for part := range slices.Chunk(w.clusters.clusters, max(1, size)) {
		sum, cost := make(symbolCounts, len(s.Symbols)), 0.0
		for _, f := range part {
			for sym, n := range f.Counts() {
				sum[sym] += n
				cost += float64(n) * float64(costs[sym])
			}
			f.DropCounts()
		}
		w.counts, w.cost = append(w.counts, sum), append(w.cost, cost)
	}
}

// control takes over what was counted between windows.
func (w *Whole) control(s *wpp.Snapshot, c *slots.Counts) {
	var things [][]cluster.Slot
	for i := range c.Sites {
		var list []cluster.Slot
		for _, slot := range c.Sites[i].Slots {
			list = append(list, cluster.Slot{Number: slot.Number, Hits: float64(slot.Hits),
				Time: float64(slot.Own())})
		}
		things = append(things, list)
	}
	w.together = make([]float64, len(w.counts))
	var scales []cluster.Factor
	var weights []float64
	var best cluster.Factor
	for i, rate := range cluster.Rates(things) {
		site := &c.Sites[i]
		x := &controlled{windows: w.block(s, site), once: site.Once}
		total := sum64(x.windows)
		if !rate.IsKnown() || total == 0 && !x.once {
			continue
		}
		if rate = rate.Times(calibration(site.Slots)); rate.Surer(best) {
			best = rate
		}
		x.between = rate.Times(cluster.Certain(float64(c.Own)))
		w.controls[site.Routine] = x
		if total == 0 {
			continue
		}
		scales = append(scales, x.between.Times(cluster.Certain(1/total)))
		weights = append(weights, total)
		for k, n := range x.windows {
			w.together[k] += n
		}
	}
	if len(scales) == 0 {
		return
	}
	w.usual = w.usualCalls()
	different, says := w.different()
	// what runs together counts once, for it is as wrong as each other
	w.ofEach = cluster.Agree(says)
	w.dropOdd(different, says)
	if w.ofEach || w.covers(s) {
		w.others = cluster.Spread(scales, weights).Times(best.Doubt())
	}
}

// callsIn is how often routines were called in windows.
func (w *Whole) callsIn(s *wpp.Snapshot) map[int]float64 {
	calls := map[int]float64{}
	for sym := range s.Symbols {
		if p := &s.Symbols[sym]; !p.IsMark && p.Start == ops.StartEntry {
			for _, counts := range w.counts {
				calls[p.Routine] += float64(counts[sym])
			}
		}
	}
	return calls
}

// usualCalls is the largest number of calls in windows that some routines have alike, one that was
// counted among them, as those have that a server runs once for each request; 0: there are none.
func (w *Whole) usualCalls() (most float64) {
	const some, alike = 4, 0.98
	for counted := range w.controls {
		level, others := w.calls[counted], 0
		for _, n := range w.calls {
			if alike*max(n, level) <= min(n, level) {
				others++
			}
		}
		if others >= some && level >= leastTogether {
			most = max(most, level)
		}
	}
	return most
}

// rounds is how far off the total of a routine may be, as a standard deviation of its logarithm,
// that a server does not run once for each request: if it does once a round of its event loop, it
// was seen to run 1.2 to 2 times as often while nobody held up the clients.
const rounds = 0.4

// doubt is that of the total of some routines besides what counts show: 1, certain unless one of
// them is called less often in windows than what is done for each request.
func (w *Whole) doubt(routines ...int) cluster.Factor {
	for _, r := range routines {
		if w.calls[r] < rarer*w.usual {
			return cluster.Doubtful(1, rounds)
		}
	}
	return cluster.Certain(1)
}

// covers reports whether the routines that were counted make up much of what ran in windows: what a
// server does once for all that wait says nothing of the rest.
func (w *Whole) covers(s *wpp.Snapshot) bool {
	const enough = 0.1
	counted, costs := 0.0, symbolCosts(s, NaturalMetric(s))
	for r := range w.controls {
		counted += sum64(w.sum(r, func(sym uint32) float64 { return float64(costs[sym]) }))
	}
	return counted >= enough*sum64(w.cost)
}

// different are controls of which no two run together, with what each says that ran in no window
// for each of what ran in one.
func (w *Whole) different() (list []*controlled, scales []cluster.Factor) {
	for _, r := range slices.Sorted(maps.Keys(w.controls)) {
		x := w.controls[r]
		total := sum64(x.windows)
		if total < leastTogether || slices.ContainsFunc(list, x.runsWith) {
			continue
		}
		list = append(list, x)
		scales = append(scales, x.between.Times(cluster.Certain(1/total)).
			Times(ratio(x.windows, w.together).Doubt()))
	}
	return list, scales
}

// runsWith reports whether a controlled routine and another one run together.
func (x *controlled) runsWith(y *controlled) bool {
	return goTogether(x.windows, y.windows, ratio(x.windows, y.windows))
}

// dropOdd drops those of the different controls that run less often in windows, or more, where the
// others agree, and what runs with them. How often they run depends on how slow the process is, so
// that it is not known for the time in which nobody looks: clients that wait for a server which was
// held up come all at once, and go on so, and its event loop has fewer rounds then, also while it
// is counted.
func (w *Whole) dropOdd(list []*controlled, scales []cluster.Factor) {
	for _, i := range cluster.Odd(scales) {
		maps.DeleteFunc(w.controls, func(_ int, x *controlled) bool {
			return x == list[i] || x.runsWith(list[i])
		})
	}
}

// calibration is in doubt as far as counting has slowed the program down: how much that is nobody
// knows better than that.
func calibration(list []slots.Slot) cluster.Factor {
	const off = 0.4 // of the cost of a hit
	var own, cost float64
	for _, s := range list {
		own, cost = own+float64(s.Own()), cost+float64(s.Cost)
	}
	return cluster.Doubtful(1, off*cost/max(own, 1))
}

// block is how often the block of a site ran, by cluster: from its first instruction on.
func (w *Whole) block(s *wpp.Snapshot, site *slots.Site) []float64 {
	blocks := s.Routines[site.Routine].Blocks
	return w.sum(site.Routine, func(sym uint32) (n float64) {
		p := &s.Symbols[sym]
		for i, b := range p.Blocks {
			if blocks[b].Addr == site.Addr && (i > 0 || p.Skip == 0) {
				n++
			}
		}
		return n
	})
}

// sum sums up by cluster what executions of a routine's paths weigh.
func (w *Whole) sum(routine int, weight func(sym uint32) float64) []float64 {
	sums := make([]float64, len(w.counts))
	for _, sym := range w.of[routine] {
		if each := weight(sym); each != 0 {
			for k, counts := range w.counts {
				sums[k] += each * float64(counts[sym])
			}
		}
	}
	return sums
}

// takeTime takes what windows are of the program's own time for what they are of what it did.
func (w *Whole) takeTime(f *wpp.Figures) {
	lo, hi := 1/f.SampledMost-1, 1/f.SampledLeast-1
	if lo <= 0 || hi <= 0 {
		return
	}
	const ends = 1.96 // standard deviations
	w.others = cluster.Doubtful(math.Sqrt(lo*hi), math.Log(hi/lo)/2/ends)
	w.together, w.ofEach = w.cost, true
}

// total estimates what there was in all of something that ran in windows, by cluster so much of it,
// in these routines; none: in all. It goes by what was counted and runs in windows whenever that
// does, unless all that was counted agrees: else it may do so less often than outside. A server
// that is slowed down does once for all clients that wait what it else does for some.
func (w *Whole) total(parts []float64, routines ...int) (t Total, known bool) {
	in := sum64(parts)
	if in == 0 {
		return t, false
	}
	var best cluster.Factor
	if w.others.IsKnown() && (w.ofEach || len(routines) == 0) {
		best = w.others.Times(ratio(parts, w.together).Doubt()).Times(cluster.Certain(in))
	}
	for _, r := range slices.Sorted(maps.Keys(w.controls)) {
		x := w.controls[r]
		by := ratio(parts, x.windows)
		if !goTogether(parts, x.windows, by) {
			continue
		}
		if !slices.Contains(routines, r) {
			by = by.Times(cluster.Doubtful(1, together))
		}
		if by = by.Times(x.between); by.Surer(best) {
			best = by
		}
	}
	if !best.IsKnown() {
		return t, false
	}
	best = best.Times(w.doubt(routines...))
	lo, hi := best.Interval()
	t = Total{in + best.Value, in + lo, in + hi}
	return t, t.Most <= mostWide*t.Least
}

// together is how far apart things may be between windows that go together in them.
const together = 0.05

// rarer is what runs less often than so many times something else.
const rarer = 0.8

// leastTogether is how often things have to run in windows for it to be known what they run with.
const leastTogether = 30

// goTogether reports whether one of two things runs in windows nearly whenever the other does, or
// so many times: far more so than chance would have it. Then it does outside. What is rarer need
// not: a server has a round for eight requests of eight clients that a window has held up, and for
// two of them else.
func goTogether(parts, wholes []float64, by cluster.Factor) bool {
	const share, leastWindows = 0.1, 5 // share of what chance makes of the ratio
	if by.Value < rarer {
		return false
	}
	in := 0
	for k := range parts {
		if parts[k] > 0 && wholes[k] > 0 {
			in++
		}
	}
	a, b := sum64(parts), sum64(wholes)
	return in >= leastWindows && min(a, b) >= leastTogether && !by.Varies(share*(1/a+1/b))
}

func ratio(parts, wholes []float64) cluster.Factor {
	list := make([]cluster.Window, len(parts))
	for k := range parts {
		list[k] = cluster.Window{Part: parts[k], Whole: wholes[k]}
	}
	return cluster.RatioOf(list)
}

func sum64(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// Calls is how often a routine was called in all; nil: that is not known.
func (w *Whole) Calls(s *wpp.Snapshot, routine int) *Total {
	if w == nil {
		return nil
	}
	if x := w.controls[routine]; x != nil && x.once { // whatever windows show
		in := sum64(x.windows)
		lo, hi := x.between.Times(w.doubt(routine)).Interval()
		if t := (Total{in + x.between.Value, in + lo, in + hi}); t.Most <= mostWide*t.Least {
			return &t
		}
	}
	return w.ofRoutine(routine, func(sym uint32) float64 {
		if s.Symbols[sym].Start == ops.StartEntry {
			return 1
		}
		return 0
	})
}

// Paths is how many paths of a routine ran in all; nil: that is not known.
func (w *Whole) Paths(routine int) *Total {
	return w.ofRoutine(routine, func(uint32) float64 { return 1 })
}

func (w *Whole) ofRoutine(routine int, weight func(sym uint32) float64) *Total {
	if w == nil {
		return nil
	}
	if t, known := w.total(w.sum(routine, weight), routine); known {
		return &t
	}
	return nil
}

// Cost is what all that ran costs, in a snapshot's natural metric; nil: that is not known.
func (w *Whole) Cost() *Total {
	if w == nil {
		return nil
	}
	if t, known := w.total(w.cost); known {
		return &t
	}
	return nil
}

// setTotals sets how often subpaths ran in all, as far as that is known.
func (w *Whole) setTotals(s *wpp.Snapshot, subpaths []Subpath) {
	if w == nil || len(subpaths) == 0 {
		return
	}
	patterns := make([][]uint32, len(subpaths))
	parts := make([][]float64, len(subpaths))
	for i := range subpaths {
		patterns[i] = slices.Concat(subpaths[i].Before, subpaths[i].Symbols)
	}
	size := (len(w.clusters.clusters) + mostInWhole - 1) / mostInWhole
	for part := range slices.Chunk(w.clusters.clusters, max(1, size)) {
		sums := make([]uint64, len(patterns))
		for _, f := range part {
			for i, n := range f.CountAll(patterns) {
				sums[i] += n
			}
		}
		for i, n := range sums {
			parts[i] = append(parts[i], float64(n))
		}
	}
	for i, pattern := range patterns {
		var routines []int
		for _, sym := range pattern {
			routines = append(routines, s.Symbols[sym].Routine)
		}
		slices.SortFunc(routines, cmp.Compare[int])
		if t, known := w.total(parts[i], slices.Compact(routines)...); known {
			subpaths[i].InAll = &t
		}
	}
}

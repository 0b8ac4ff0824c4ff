package query

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/internal/saturating"
	"wpptrace/internal/text"
	"wpptrace/query/cluster"
	"wpptrace/query/internal/forest"
	"wpptrace/query/names"
)

// A Change is how the cost of a path or subpath differs from one snapshot to another.
type Change string

// The changes. What costs as much in both is none.
const (
	New    Change = "new"    // it ran only in the second
	Gone   Change = "gone"   // it ran only in the first
	Hotter Change = "hotter" // it cost more in the second
	Colder Change = "colder" // it cost less in the second
	// it ran in one; the other does not trace all of it, or what came between
	Unseen Change = "unseen"
)

// A DiffQuery says what of two snapshots is compared.
type DiffQuery struct {
	// which subpaths: those that are hot in one of them; Metric counts for paths too, "":
	// Instructions if both know them; Top, TIDs and Table are not used
	Hot HotQuery
	// compare shares of the cost of all, not costs: of runs that were not equally long
	Share bool
	Top   int // keep so many paths and subpaths, those whose cost changed most; 0: all
	// keep differences of windows that may be by chance, too; such are known where Share is asked
	// for and a snapshot has windows
	All bool
}

// A Difference is a path or subpath that changed.
type Difference struct {
	Change Change
	Paths  []Place // those of a path that both have are the first's
	CountA uint64
	CountB uint64
	// of what ran within it, each execution of a path counted once, as Subpath.Covered
	CostA  uint64
	CostB  uint64
	ShareA float64 // of all that ran
	ShareB float64
	// how sure the difference of the shares is; nil: it is exact, or that is not known
	Certainty *cluster.Difference
	Chance    bool // it may be by chance

	symbols []uint32 // of the alphabet of both
}

// A DiffReport is the answer to a DiffQuery. Its differences stand by falling change of cost, or of
// share.
type DiffReport struct {
	Query    DiffQuery
	TotalA   uint64 // the cost of all that ran
	TotalB   uint64
	Paths    []Difference
	Subpaths []Difference
	// each with one of its paths, and what all of them ran and cost
	Routines []Difference
	Found    [3]int // paths, subpaths and routines, before Top cuts them down
	Hidden   [3]int // of these besides, those whose difference may be by chance
	// of each snapshot, in how many windows anything ran; 0: all was traced, or that is not known
	Windows [2]int
	Unsure  error // why it is not known how sure differences are; nil: it is, or they are exact
}

// ErrOtherBuild says that two snapshots are of different programs.
var ErrOtherBuild = errors.New("the snapshots are of different builds, whose paths cannot be " +
	"compared")

// Diff compares what all threads of two snapshots of the same build ran: the paths, and the
// subpaths that are hot in one of them, each with its exact count and cost in both. Paths are the
// same if routine, number, beginning and end are. It fails where an image that both have differs in
// its build id, or none is the same. Snapshots that were made of traces have neither images nor
// build ids: their routines are known by name and entry, of which they must have one in common.
//
// It takes the time of Hot on both, less that of ranking, and that of counting what is hot in one
// alone in the other: in proportion to the right-hand operands times the longest subpath.
func Diff(a, b *wpp.Snapshot, q DiffQuery) (r *DiffReport, err error) {
	defer wpp.Recover(&err)
	q.Hot.Top, q.Hot.TIDs, q.Hot.Table = 0, nil, nil
	if q.Top < 0 {
		return nil, fmt.Errorf("compare snapshots: number of differences %d is below 0", q.Top)
	}
	if err := q.Hot.Validate(); err != nil {
		return nil, err
	}
	if q.Hot.MaxLength > 1 && (pathprofile.IsProfile(a) || pathprofile.IsProfile(b)) {
		return nil, fmt.Errorf("compare subpaths of more than one path: %w", ErrUnordered)
	}
	ofTraces := NaturalMetric(a) == Executions && NaturalMetric(b) == Executions
	same := sameBuild
	if ofTraces {
		same = sameRoutines
	}
	if err := same(a, b); err != nil {
		return nil, err
	}
	if q.Hot.Metric = cmp.Or(q.Hot.Metric, Instructions); ofTraces {
		q.Hot.Metric = Executions
	}
	x := newAlphabet(a, b)
	operands, err := newOperands(a, b, x, q.Hot)
	if err != nil {
		return nil, err
	}
	r = &DiffReport{Query: q, TotalA: operands[0].total, TotalB: operands[1].total}
	paths := x.paths()
	var subpaths [][]uint32
	for _, p := range slices.Concat(operands[0].hot, operands[1].hot) {
		subpaths = append(subpaths, p.Symbols)
	}
	slices.SortFunc(subpaths, slices.Compare)
	subpaths = slices.CompactFunc(subpaths, slices.Equal)
	if q.Share {
		r.Unsure = r.cut(x, [2]*wpp.Snapshot{a, b}, &operands)
	}
	r.Paths, r.Found[0], r.Hidden[0] = r.compare(x, operands, sequenceKind, paths)
	r.Subpaths, r.Found[1], r.Hidden[1] = r.compare(x, operands, sequenceKind, subpaths)
	r.Routines, r.Found[2], r.Hidden[2] = r.compare(x, operands, routineKind, x.routines())
	for i := range r.Routines {
		r.Routines[i].Paths = r.Routines[i].Paths[:1]
	}
	return r, nil
}

// sameBuild compares the images that both snapshots have.
func sameBuild(a, b *wpp.Snapshot) error {
	common := 0
	for i := range a.Images {
		for j := range b.Images {
			x, y := &a.Images[i], &b.Images[j]
			if x.Base() != y.Base() {
				continue
			}
			if !bytes.Equal(x.BuildID, y.BuildID) {
				return fmt.Errorf("compare %s: %w: build ids %x and %x", names.Printable(x.Base()),
					ErrOtherBuild, x.BuildID, y.BuildID)
			}
			if len(x.BuildID) == 0 {
				return fmt.Errorf("compare %s: %w: it has no build id", names.Printable(x.Base()),
					ErrOtherBuild)
			}
			common++
		}
	}
	if common == 0 {
		return fmt.Errorf("compare snapshots: %w: they have no image in common", ErrOtherBuild)
	}
	return nil
}

// sameRoutines makes sure that two snapshots that were made of traces can be of the same program.
func sameRoutines(a, b *wpp.Snapshot) error {
	known := make(map[routineIdentity]bool)
	for i := range a.Routines {
		known[routineIdentity{routine: a.Routines[i].Name, entry: a.Routines[i].Entry}] = true
	}
	for i := range b.Routines {
		if known[routineIdentity{routine: b.Routines[i].Name, entry: b.Routines[i].Entry}] {
			return nil
		}
	}
	return fmt.Errorf("compare snapshots: %w: they have no routine in common", ErrOtherBuild)
}

// An operand is one of the snapshots, in the common alphabet.
type operand struct {
	forest  *forest.Forest
	total   uint64
	hot     []Subpath  // in the common alphabet, by rising symbols
	windows *clustered // nil: all was traced, or it is not known in which windows
}

func newOperand(s *wpp.Snapshot, x *alphabet, q HotQuery, i int) (*operand, error) {
	f, _, err := allCounted(s)
	if err != nil {
		return nil, err
	}
	q = q.completed(s)
	report, err := findHot(f, costsOf(s, q), q)
	if err != nil {
		return nil, fmt.Errorf("find hot subpaths: %w", err)
	}
	f.Rename(x.of[i], len(x.cost))
	d := &operand{forest: f, total: report.Total, hot: report.Subpaths}
	for _, p := range d.hot {
		for k, sym := range p.Symbols {
			p.Symbols[k] = x.of[i][sym]
		}
	}
	slices.SortFunc(d.hot, func(a, b Subpath) int { return slices.Compare(a.Symbols, b.Symbols) })
	return d, nil
}

// newOperands makes both operands.
func newOperands(a, b *wpp.Snapshot, x *alphabet, q HotQuery) (operands [2]*operand, err error) {
	snapshots := [2]*wpp.Snapshot{a, b}
	var errs [2]error
	ofBoth(a.InSegments() || b.InSegments(),
		func(i int) { operands[i], errs[i] = newOperand(snapshots[i], x, q, i) })
	return operands, cmp.Or(errs[0], errs[1])
}

// ofBoth does something for both operands: at once, but for segments, which take memory and may
// fail.
func ofBoth(segments bool, do func(i int)) {
	if segments {
		do(0)
		do(1)
		return
	}
	var first sync.WaitGroup
	first.Go(func() { do(0) })
	do(1)
	first.Wait()
}

// countAll counts sequences, but that it has single paths counted already, and what is hot here.
func (d *operand) countAll(sequences [][]uint32) []uint64 {
	counts := make([]uint64, len(sequences))
	var other [][]uint32
	var of []int // other -> index in sequences
	for i, s := range sequences {
		if len(s) == 1 {
			counts[i] = d.forest.Counts()[s[0]]
		} else if at, ok := slices.BinarySearchFunc(d.hot, s,
			func(p Subpath, s []uint32) int { return slices.Compare(p.Symbols, s) }); ok {
			counts[i] = d.hot[at].Count
		} else {
			other, of = append(other, s), append(of, i)
		}
	}
	for k, n := range d.forest.CountAll(other) {
		counts[of[k]] = n
	}
	return counts
}

// A weigher counts parts of what ran, given by symbols, and finds out what they cost.
type weigher func(d *operand, parts [][]uint32, cost []uint64) []Subpath

// A partKind is a kind of parts that are compared.
type partKind struct {
	weigh weigher
	// one of the snapshots may have run such a part unseen
	unseen func(x *alphabet, symbols []uint32) bool
}

var (
	sequenceKind = partKind{(*operand).weigh, (*alphabet).isUnseen}
	routineKind  = partKind{(*operand).weighRoutines, (*alphabet).isAlone}
)

// weighRoutines is a weigher of routines, given by their paths.
func (d *operand) weighRoutines(routines [][]uint32, cost []uint64) []Subpath {
	list := make([]Subpath, len(routines))
	counts := d.forest.Counts()
	for i, paths := range routines {
		p := &list[i]
		for _, sym := range paths {
			p.Count = saturating.Add(p.Count, counts[sym])
			p.Covered = saturating.Add(p.Covered, saturating.Mul(counts[sym], cost[sym]))
		}
	}
	return list
}

// weigh is a weigher of sequences.
func (d *operand) weigh(sequences [][]uint32, cost []uint64) []Subpath {
	list := make([]Subpath, len(sequences))
	for i, n := range d.countAll(sequences) {
		list[i] = Subpath{Symbols: sequences[i], Count: n,
			Cost: saturating.Mul(n, costOf(sequences[i], cost))}
	}
	coverEach(d.forest, list, cost, d.total)
	return list
}

// cut cuts the operands into windows. It fails where it is not known what ran in which window.
func (r *DiffReport) cut(x *alphabet, both [2]*wpp.Snapshot, operands *[2]*operand) error {
	var cuts [2]*clustered
	for i, s := range both {
		if s.Figures.Windows == 0 {
			continue
		}
		c, err := clusterOf(s)
		if err == nil && c.windows < cluster.Least {
			err = fmt.Errorf("it has %s", text.Count(c.windows, "window"))
		}
		if err != nil {
			return fmt.Errorf("of the %s snapshot: %w", [...]string{"first", "second"}[i], err)
		}
		c.rename(x.of[i], len(x.cost))
		cuts[i], r.Windows[i] = c, c.windows
	}
	for i, c := range cuts {
		operands[i].windows = c
	}
	return nil
}

// judge says how sure differences are, where that is to be said.
func (r *DiffReport) judge(operands [2]*operand, weigh weigher, list []Difference, cost []uint64) {
	if operands[0].windows == nil && operands[1].windows == nil {
		return
	}
	sequences := make([][]uint32, len(list))
	for i := range list {
		sequences[i] = list[i].symbols
	}
	var shares [2][]cluster.Share
	ofBoth(false, func(i int) {
		if w := operands[i].windows; w != nil {
			shares[i] = w.shares(weigh, sequences, cost)
		}
	})
	chances := make([]float64, len(list))
	for i := range list {
		d := &list[i]
		before, after := cluster.Exact(d.ShareA), cluster.Exact(d.ShareB)
		if shares[0] != nil {
			before = shares[0][i]
		}
		if shares[1] != nil {
			after = shares[1][i]
		}
		if c, known := cluster.Compare(before, after); known {
			d.Certainty, chances[i] = &c, c.P
		}
	}
	for i, certain := range cluster.Significant(chances) {
		list[i].Chance = !certain
	}
}

// compare lists the parts that changed, how many there are of them, and how many besides may have
// changed by chance.
func (r *DiffReport) compare(x *alphabet, operands [2]*operand, kind partKind,
	parts [][]uint32) (list []Difference, found, hidden int) {
	cost := x.cost
	if r.Query.Hot.Metric == Executions {
		cost = slices.Repeat([]uint64{1}, len(x.cost))
	}
	var both [2][]Subpath
	ofBoth(!operands[0].forest.AtOnce() || !operands[1].forest.AtOnce(),
		func(i int) { both[i] = kind.weigh(operands[i], parts, cost) })
	for i, symbols := range parts {
		a, b := &both[0][i], &both[1][i]
		d := Difference{CountA: a.Count, CountB: b.Count, CostA: a.Covered, CostB: b.Covered,
			symbols: symbols}
		d.ShareA, d.ShareB = Share(d.CostA, r.TotalA), Share(d.CostB, r.TotalB)
		if d.Change = r.change(&d, kind.unseen(x, symbols)); d.Change != "" {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(r.size(&b), r.size(&a)), slices.Compare(a.symbols, b.symbols))
	})
	r.judge(operands, kind.weigh, list, cost)
	if found = len(list); !r.Query.All {
		list = slices.DeleteFunc(list, func(d Difference) bool { return d.Chance })
	}
	hidden, found = found-len(list), len(list)
	if r.Query.Top > 0 {
		list = list[:min(r.Query.Top, len(list))]
	}
	for i := range list {
		for _, sym := range list[i].symbols {
			list[i].Paths = append(list[i].Paths, x.first[sym])
		}
	}
	return list, found, hidden
}

func (r *DiffReport) change(d *Difference, unseen bool) Change {
	order := cmp.Compare(d.CountA, d.CountB)
	if r.Query.Share {
		order = cmp.Compare(d.ShareA, d.ShareB)
	}
	switch {
	case (d.CountA == 0) != (d.CountB == 0) && unseen:
		return Unseen
	case d.CountA == 0 && d.CountB > 0:
		return New
	case d.CountB == 0 && d.CountA > 0:
		return Gone
	case order < 0:
		return Hotter
	case order > 0:
		return Colder
	}
	return ""
}

// size is by how much a cost, or share, changed.
func (r *DiffReport) size(d *Difference) float64 {
	if r.Query.Share {
		return max(d.ShareA-d.ShareB, d.ShareB-d.ShareA)
	}
	return float64(max(d.CostA, d.CostB) - min(d.CostA, d.CostB))
}

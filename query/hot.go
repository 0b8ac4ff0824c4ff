package query

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
)

// A Metric is what an execution of a path costs.
type Metric string

// The metrics.
const (
	Instructions Metric = "instructions" // the instructions that the path ran
	Executions   Metric = "count"        // one
	// Any other is the column of a CostTable.
)

// NaturalMetric is what costs are counted in where nothing is said: executions where a snapshot was
// made of a trace, whose paths have no blocks, else instructions. It takes time linear in the
// routines.
func NaturalMetric(s *wpp.Snapshot) Metric {
	if slices.ContainsFunc(s.Routines, func(r wpp.Routine) bool { return len(r.Blocks) > 0 }) {
		return Instructions
	}
	return Executions
}

// CostOf is what an execution of a symbol costs by a metric, Instructions or Executions: 0 for a
// mark.
func (m Metric) CostOf(s *wpp.Snapshot, sym uint32) uint64 {
	switch {
	case s.Symbols[sym].IsMark:
		return 0
	case m == Executions:
		return 1
	}
	return s.SymbolCost(sym)
}

// A HotKind says which of the hot subpaths are asked for.
type HotKind string

// The kinds.
const (
	// of which no proper prefix of MinLength or more is hot: all of them
	Minimal HotKind = "minimal"
	// that no path before or behind makes longer, up to MaxLength, without making them rarer: all
	// of them
	Maximal HotKind = "maximal"
	Larus   HotKind = "larus" // those that the greedy algorithm of Larus 1999, figure 7, reports
)

// A HotQuery says which subpaths are hot: Larus's L, C and minimum length (1999, section 4.2 and
// figure 7).
type HotQuery struct {
	MinLength int    // in paths, at least 1
	MaxLength int    // in paths, at most 10,000
	MinCost   uint64 // least cost of a hot subpath; where it is 0, MinShare counts
	// least cost of a hot subpath as a share of the cost of all that ran, 0 to 1
	MinShare float64
	// "": Instructions, or Executions where the snapshot does not say what paths consist of
	Metric Metric
	Table  *CostTable // not nil: what paths cost; Metric becomes its Column
	Kind   HotKind    // "": Minimal
	Top    int        // keep so many, the hottest; 0: all
	TIDs   []int      // threads; nil: all
}

// DefaultHotQuery returns the query that asks for subpaths of 2 to 100 paths that make up 1 % of
// the cost of all. The upper length is where Larus found that few more turn up; his lower one,
// "greater than 1", is that of his worked example.
func DefaultHotQuery() HotQuery {
	return HotQuery{MinLength: 2, MaxLength: 100, MinShare: 0.01, Kind: Minimal}
}

// FitTo has single paths asked for where a snapshot is a path profile, which has no longer
// subpaths, unless lengths are given: least, most, or both.
func (q *HotQuery) FitTo(s *wpp.Snapshot, least, most bool) {
	if !pathprofile.IsProfile(s) {
		return
	}
	if !least {
		q.MinLength = 1
	}
	if !most {
		q.MaxLength = q.MinLength
	}
}

// mostLength bounds MaxLength, and by that the memory that a search takes for each symbol of a
// grammar.
const mostLength = 10_000

// Validate fails where the query makes no sense, whatever the snapshot.
func (q *HotQuery) Validate() error {
	switch {
	case q.MinLength < 1:
		return fmt.Errorf("find hot subpaths: minimum length %d is below 1", q.MinLength)
	case q.MaxLength < q.MinLength || q.MaxLength > mostLength:
		return fmt.Errorf("find hot subpaths: maximum length %d is not between the minimum "+
			"length %d and %d", q.MaxLength, q.MinLength, mostLength)
	case !(q.MinShare >= 0 && q.MinShare <= 1):
		return fmt.Errorf("find hot subpaths: minimum share %g is not between 0 and 1", q.MinShare)
	case q.Table == nil && q.Metric != "" && q.Metric != Instructions && q.Metric != Executions:
		return fmt.Errorf("find hot subpaths: unknown cost %q: use %q or %q", q.Metric,
			Instructions, Executions)
	case q.Kind != "" && q.Kind != Minimal && q.Kind != Maximal && q.Kind != Larus:
		return fmt.Errorf("find hot subpaths: unknown kind %q: use %q, %q or %q", q.Kind, Minimal,
			Maximal, Larus)
	case q.Top < 0:
		return fmt.Errorf("find hot subpaths: number of subpaths %d is below 0", q.Top)
	}
	return nil
}

// A Subpath is a sequence of consecutively executed acyclic paths.
type Subpath struct {
	Symbols []uint32
	// the path that ran directly before these executions, where the first path costs something else
	// behind it; or empty
	Before []uint32
	Count  uint64 // executions; those that overlap count each
	Cost   uint64 // Count times the cost of its paths: what Larus compares with C

	// Covered is the cost of what ran within the subpath, each execution of a path counted once. It
	// is Cost where no two occurrences overlap: in a loop of one path, two iterations in a row cost
	// about twice what they cover.
	Covered uint64
	// Cumulative is the cost of what ran within this subpath or one before it in the report, each
	// execution of a path counted once.
	Cumulative uint64
	// InAll is how often it ran in the whole run, of which windows were recorded; nil: that is not
	// known, or all of it was recorded.
	InAll *Total
}

// A HotReport is the answer to a HotQuery.
type HotReport struct {
	Query    HotQuery
	Threads  int
	Paths    uint64    // executions of paths in these threads
	Total    uint64    // the cost of them
	MinCost  uint64    // the least cost of a hot subpath, from the query's MinCost or MinShare
	Found    int       // subpaths of the query's kind, before Top cuts them down
	Unpriced int       // distinct paths that the query's table does not name: they cost nothing
	Unused   int       // rows of it that name no path of the snapshot
	Subpaths []Subpath // by falling Covered, then by falling Count and rising Symbols
	// InAll is the cost of all that ran in the whole run, of which windows were recorded; nil: that
	// is not known, or all of it was recorded, or Total is of some threads, or by a table.
	InAll *Total
}

// Hot finds the hot subpaths of a kind, if not said otherwise the minimal ones: the sequences of
// MinLength to MaxLength consecutive paths of a thread whose cost is at least C and of which no
// proper prefix of MinLength or more is hot (Larus 1999, section 4.2). It finds all of them, where
// figure 7 of the paper is greedy and misses most. No subpath holds or crosses a mark, of whatever
// kind: after a gap, a resume, an unwinding or a signal, what comes next did not follow from what
// came before. Equal sequences of several threads are one subpath.
//
// It grows sequences path by path and leaves off where even the costliest paths could not bring one
// to C. In the worst case that takes time in proportion to MaxLength^2 times the right-hand sides,
// and memory to MaxLength times them. SEQUITUR's grammars of ten million executed paths take up to
// a second with the default query, ten times that for a MaxLength of 1000.
//
// The maximal ones take that time and memory too, and in practice five times that; there may be
// MaxLength times as many. Figure 7 takes time in proportion to the right-hand sides times
// MaxLength. It fails where the answer, or what may become part of it, would take much more than
// half a gigabyte.
func Hot(s *wpp.Snapshot, q HotQuery) (report *HotReport, err error) {
	defer wpp.Recover(&err)
	if err := q.Validate(); err != nil {
		return nil, err
	}
	if q.MaxLength > 1 && pathprofile.IsProfile(s) {
		return nil, fmt.Errorf("find hot subpaths of more than one path: %w", ErrUnordered)
	}
	q = q.completed(s)
	c := costsOf(s, q)
	if c.err != nil {
		return nil, fmt.Errorf("find hot subpaths: %w", c.err)
	}
	f, threads, err := forestOf(s, q.TIDs, len(c.of), c.apartness())
	if err != nil {
		return nil, err
	}
	report, err = findHot(f, c, q)
	if err != nil {
		return nil, fmt.Errorf("find hot subpaths: %w", err)
	}
	report.Threads, report.Unpriced, report.Unused = threads, c.unpriced, c.unused
	report.rank(f, c.of)
	for i := range report.Subpaths {
		p := &report.Subpaths[i]
		p.Before = c.plain(p.Symbols)
	}
	return report, report.setTotals(s)
}

// setTotals sets what is known of the whole run of a recording in windows.
func (r *HotReport) setTotals(s *wpp.Snapshot) error {
	if len(r.Query.TIDs) > 0 || r.Query.Table != nil {
		return nil
	}
	whole, err := NewWhole(s)
	if err != nil {
		return err
	}
	whole.setTotals(s, r.Subpaths)
	if r.Query.Metric == NaturalMetric(s) {
		r.InAll = whole.Cost()
	}
	return nil
}

// completed is the query with what it leaves to the snapshot.
func (q HotQuery) completed(s *wpp.Snapshot) HotQuery {
	if q.Kind = cmp.Or(q.Kind, Minimal); q.Table != nil {
		q.Metric = Metric(q.Table.Column)
	}
	q.Metric = cmp.Or(q.Metric, NaturalMetric(s))
	return q
}

// findHot finds the subpaths, in no order, and not what they cover.
func findHot(f *forest.Forest, c *costs, q HotQuery) (*HotReport, error) {
	report := &HotReport{Query: q}
	report.measure(f, c)
	var err error
	switch {
	case q.Kind == Larus:
		report.Subpaths = newFigure7(f, c, report).run()
	case f.AtOnce():
		report.Subpaths, err = newHotSearch(f, c, report).run()
	default:
		report.Subpaths, err = newSegmentSearch(f, c, report).run()
	}
	report.Found = len(report.Subpaths)
	return report, err
}

func symbolCosts(s *wpp.Snapshot, m Metric) []uint64 {
	cost := make([]uint64, len(s.Symbols))
	for sym := range s.Symbols {
		cost[sym] = m.CostOf(s, uint32(sym))
	}
	return cost
}

func (r *HotReport) measure(f *forest.Forest, c *costs) {
	for v, n := range f.Counts() {
		if c.isMark[v] {
			continue
		}
		r.Paths = saturating.Add(r.Paths, n)
		r.Total = saturating.Add(r.Total, saturating.Mul(n, c.of[v]))
	}
	r.MinCost = r.Query.MinCost
	if r.MinCost == 0 {
		r.MinCost = max(1, shareOf(r.Total, r.Query.MinShare))
	}
}

// shareOf is the least whole number that is at least a share of the total. The share is the decimal
// that is written so: 7 % of 100 are 7, though no binary number is 0.07.
func shareOf(total uint64, share float64) uint64 {
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(share, 'g', -1, 64))
	if !ok {
		return total
	}
	exact.Mul(exact, new(big.Rat).SetUint64(total))
	cost, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		cost.Add(cost, big.NewInt(1))
	}
	if !cost.IsUint64() {
		return total
	}
	return min(total, cost.Uint64())
}

func (r *HotReport) rank(f *forest.Forest, cost []uint64) {
	coverEach(f, r.Subpaths, cost, r.Total)
	slices.SortFunc(r.Subpaths, byCovered)
	if r.Query.Top > 0 {
		r.Subpaths = r.Subpaths[:min(r.Query.Top, len(r.Subpaths))]
	}
	ranked := make([][]uint32, len(r.Subpaths))
	for i := range r.Subpaths {
		ranked[i] = r.Subpaths[i].Symbols
	}
	for i, covered := range f.Covered(ranked, cost) {
		r.Subpaths[i].Cumulative = covered
	}
}

func byCovered(a, b Subpath) int {
	return cmp.Or(cmp.Compare(b.Covered, a.Covered), cmp.Compare(b.Count, a.Count),
		slices.Compare(a.Symbols, b.Symbols))
}

package report

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/text"
	"wpptrace/query/bounds"
	"wpptrace/query/names"
)

// BoundsJSON is what bounds --json prints: how often two paths ran one directly behind the other,
// over a back edge, a call or a return, as far as counts of overlapping paths tell. Where windows
// were traced, counts are those of these.
type BoundsJSON struct {
	SchemaVersion int `json:"schema_version"`
	// base name of the executable
	Program string `json:"program"`
	// of the overlapping paths: they end at the predicate number degree + 1
	Degree int `json:"degree"`
	// all paths that ran are told apart by it
	GreatestDegree int `json:"greatest_degree"`
	// of all places, and by kind: loop, call, return
	Flows   []BoundsFlow `json:"flows"`
	Windows uint64       `json:"windows"` // that were traced; 0: all the time was
	// the same of all places, by counts of paths alone
	Alone BoundsFlow `json:"path_counts_alone"`
	// how often two paths were no pair, as it is not certain that the second went on from the
	// first
	Broken []BoundsReason `json:"broken"`
	// how many routines ran and have no pairs
	LeftOut []BoundsReason `json:"routines_left_out"`
	// of the truth, what ran at places or on paths that did not run here; null: it is of this file,
	// or not known
	Elsewhere *uint64 `json:"truth_elsewhere"`
	// by falling flow, of which --top leaves out the last
	Places []BoundsPlace `json:"places"`

	leftOut  *BoundsPlace // one that is
	snapshot *wpp.Snapshot
}

// BoundsReason is why something is not bounded.
type BoundsReason struct {
	Reason string `json:"reason"` // in words
	Count  uint64 `json:"count"`  // of it
}

// BoundsFlow is how often the pairs of some places ran, all together.
type BoundsFlow struct {
	Kind   string `json:"kind"`   // loop, call or return; all: of all kinds
	Places int    `json:"places"` // back edges' heads, call sites, returns
	Pairs  uint64 `json:"pairs"`  // of paths that ran, each with each at a place
	Exact  uint64 `json:"exact"`  // of the pairs, those whose bounds are equal
	// places without bounds: see their reasons
	LeftOut int `json:"places_left_out"`
	BoundsSums
}

// BoundsSums are sums of bounds, and the truth.
type BoundsSums struct {
	Definite  uint64  `json:"definite_flow"`  // the sum of lower bounds
	Potential uint64  `json:"potential_flow"` // the sum of upper bounds
	Real      *uint64 `json:"real_flow"`      // that of how often they ran; null: not known
	// pairs that ran less often than the lower bound says, or more often than the upper one: none
	// in the same run; null: not known
	Outside *uint64 `json:"outside_bounds"`
}

// BoundsPlace is a back edge, a call site with a routine that it calls, or a return to it.
type BoundsPlace struct {
	Kind    string `json:"kind"`    // loop, call or return
	Image   string `json:"image"`   // base name of the file that the routine is in
	Routine string `json:"routine"` // that has the loop, or calls
	// of the loop's head, of the block with the call, or of the one behind it: link-time, in hex
	Address string  `json:"address"`
	File    string  `json:"file,omitempty"` // of the block; absent: not known
	Line    int     `json:"line,omitempty"` // of the block; absent: not known
	Callee  *string `json:"callee"`         // that is called; null: it is a loop
	// that tells all paths apart that ran there
	GreatestDegree int     `json:"greatest_degree"`
	Pairs          uint64  `json:"pairs"`    // of paths that ran there
	Exact          uint64  `json:"exact"`    // of the pairs, those whose bounds are equal
	LeftOut        *string `json:"left_out"` // why it has no bounds; null: it has
	BoundsSums
	// pairs that may have run, by falling upper bound, of which --paths leaves out the last
	Paths []BoundsRow `json:"paths"`

	hidden int // pairs that are left out
}

// BoundsRow is a pair of paths.
type BoundsRow struct {
	// blocks of the first path, by their link-time addresses, in hex; of a loop, those within it
	First  []string `json:"first"`
	Second []string `json:"second"` // of the path that runs directly behind it
	Lower  uint64   `json:"lower"`  // it ran at least so often
	Upper  uint64   `json:"upper"`  // and at most so often
	Truth  *uint64  `json:"truth"`  // it did run so often; null: not known

	row bounds.Row
}

// A BoundsLimit is how much of bounds is printed; 0: all.
type BoundsLimit struct{ Places, Paths int }

// NewBounds bounds the pairs of a model by overlapping paths of a degree. LeftOut are routines that
// have none, by reason; elsewhere is what the model's TakeTruth returned of another snapshot, or
// nil.
func NewBounds(m *bounds.Model, degree int, leftOut map[string]int, elsewhere *uint64,
	limit BoundsLimit) *BoundsJSON {
	s := m.Snapshot
	r := &BoundsJSON{SchemaVersion: SchemaVersion, Degree: degree, GreatestDegree: m.Degree(),
		Broken: []BoundsReason{}, LeftOut: []BoundsReason{}, Elsewhere: elsewhere,
		Places: []BoundsPlace{}, Windows: s.Figures.Windows, snapshot: s}
	if len(s.Images) > 0 {
		r.Program = s.Images[0].Base()
	}
	for reason, n := range m.Profile.Broken {
		if n > 0 {
			r.Broken = append(r.Broken, BoundsReason{overlapped.Reason(reason).String(), n})
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		r.LeftOut = append(r.LeftOut, BoundsReason{reason, uint64(leftOut[reason])})
	}
	flows := [4]bounds.Flow{}
	r.Flows = make([]BoundsFlow, len(flows))
	called := names.Of(s)
	for a := range m.Answers(degree) {
		for _, i := range []int{0, 1 + int(a.Kind)} {
			r.Flows[i].add(a)
			flows[i].Add(a.Flow)
		}
		r.Places = append(r.Places, boundsPlace(s, called, a, m.IsTruthKnown(), limit.Paths))
	}
	const all = "all"
	for i := range flows {
		r.Flows[i].Kind = all
		if i > 0 {
			r.Flows[i].Kind = overlapped.Kind(i - 1).String()
		}
		r.Flows[i].BoundsSums = sums(flows[i], m.IsTruthKnown())
	}
	var alone bounds.Flow
	r.Alone.Kind = all
	for a := range m.Answers(bounds.Alone) {
		r.Alone.add(a)
		alone.Add(a.Flow)
	}
	r.Alone.BoundsSums = sums(alone, m.IsTruthKnown())
	slices.SortStableFunc(r.Places, func(x, y BoundsPlace) int {
		return -cmp.Compare(x.weight(), y.weight())
	})
	hasNone := func(p BoundsPlace) bool { return p.LeftOut != nil }
	if i := slices.IndexFunc(r.Places, hasNone); i >= 0 {
		leftOut := r.Places[i]
		r.leftOut = &leftOut
	}
	if limit.Places > 0 {
		r.Places = r.Places[:min(limit.Places, len(r.Places))]
	}
	return r
}

func (f *BoundsFlow) add(a *bounds.Answer) {
	f.Places++
	f.Pairs += a.Pairs
	f.Exact += a.Exact
	if a.LeftOut != "" {
		f.LeftOut++
	}
}

func (s *BoundsSums) weight() uint64 {
	if s.Real != nil {
		return *s.Real
	}
	return s.Potential
}

func sums(f bounds.Flow, known bool) BoundsSums {
	s := BoundsSums{Definite: f.Definite, Potential: f.Potential}
	if known {
		s.Real, s.Outside = &f.Real, &f.Outside
	}
	return s
}

func boundsPlace(s *wpp.Snapshot, called *names.Names, a *bounds.Answer, known bool,
	most int) BoundsPlace {
	block := &s.Routines[a.Routine].Blocks[a.Block]
	p := BoundsPlace{Kind: a.Kind.String(), Image: s.Images[s.Routines[a.Routine].Image].Base(),
		Routine: called.Routine(a.Routine), Address: hex(block.Addr), GreatestDegree: a.Degree,
		Pairs: a.Pairs, Exact: a.Exact, BoundsSums: sums(a.Flow, known), Paths: []BoundsRow{}}
	if block.Line > 0 {
		p.File, p.Line = s.Files[block.File], block.Line
	}
	if a.Callee >= 0 {
		callee := called.Routine(a.Callee)
		p.Callee = &callee
	}
	if a.LeftOut != "" {
		p.LeftOut, p.BoundsSums = &a.LeftOut, BoundsSums{}
	}
	rows := slices.Collect(a.Rows())
	slices.SortStableFunc(rows, func(x, y bounds.Row) int {
		return cmp.Or(-cmp.Compare(x.Upper, y.Upper), -cmp.Compare(x.Lower, y.Lower))
	})
	if most > 0 && len(rows) > most {
		p.hidden = len(rows) - most
		rows = rows[:most]
	}
	first, second := a.Routines()
	for _, row := range rows {
		x := BoundsRow{First: blockAddresses(s, first, row.First), Second: blockAddresses(s, second,
			row.Second), Lower: row.Lower, Upper: row.Upper, row: row}
		if known {
			x.Truth = &row.Truth
		}
		p.Paths = append(p.Paths, x)
	}
	return p
}

func blockAddresses(s *wpp.Snapshot, routine int, blocks []int) (list []string) {
	for _, b := range blocks {
		list = append(list, hex(s.Routines[routine].Blocks[b].Addr))
	}
	return list
}

// WriteJSON writes bounds as one JSON object.
func (r *BoundsJSON) WriteJSON(w io.Writer) error { return WriteJSON(w, r, "bounds") }

// WriteText writes bounds as tables: the flows of all places, and the pairs of each place.
func (r *BoundsJSON) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Bounds by overlapping paths of degree %d; the greatest useful degree is %d\n",
		r.Degree, r.GreatestDegree)
	writeWindows(out, r.snapshot, "counts")
	if n := r.snapshot.Figures.Lost; n > 0 {
		fmt.Fprintf(out, "Lost: %s: pairs ran as often as is counted, or more often\n",
			text.Count(n, "event"))
	}
	fmt.Fprintf(out, "\n%-17s %8s %9s %9s %10s %19s %19s\n", "", "PLACES", "PAIRS", "EXACT", "REAL",
		"DEFINITE", "POTENTIAL")
	line := func(name string, f *BoundsFlow) {
		fmt.Fprintf(out, "%-17s %8d %9d %9d %10s %s %s\n", name, f.Places, f.Pairs, f.Exact,
			number(f.Real), besideReal(f.Definite, f.Real), besideReal(f.Potential, f.Real))
	}
	for i, name := range []string{"all", "loops", "calls", "returns"} {
		line(name, &r.Flows[i])
	}
	line("path counts alone", &r.Alone)
	r.writeNotes(out)
	for i := range r.Places {
		r.Places[i].write(out)
	}
	if more := r.Flows[0].Places - len(r.Places); more > 0 {
		fmt.Fprintf(out, "\n%s: --top 0 prints them\n", text.Count(more, "more place"))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write bounds: %w", err)
	}
	return nil
}

// besideReal is a sum of bounds, with what it is off the truth.
func besideReal(n uint64, real *uint64) string {
	if real == nil || *real == 0 {
		return fmt.Sprintf("%19d", n)
	}
	return fmt.Sprintf("%10d %8s", n, offReal(n, *real))
}

func offReal(n, real uint64) string {
	return fmt.Sprintf("%+.1f%%", 100*(float64(n)/float64(real)-1))
}

func number(n *uint64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatUint(*n, 10)
}

func (r *BoundsJSON) writeNotes(out *bufio.Writer) {
	blank := "\n" // before the first one
	note := func(front, format string, args ...any) {
		out.WriteString(blank)
		blank = ""
		writeParagraph(out, front, strings.Fields(fmt.Sprintf(format, args...)))
	}
	for _, x := range r.Broken {
		note("no pair: ", "%s (%s)", text.Count(x.Count, "time"), x.Reason)
	}
	for _, x := range r.LeftOut {
		note("left out: ", "%s (%s)", text.Count(x.Count, "routine"), names.Printable(x.Reason))
	}
	if r.Elsewhere != nil {
		note("", "the other recording ran pairs of other paths %s",
			text.Count(*r.Elsewhere, "time"))
	}
	if o := r.Flows[0].Outside; o != nil && *o > 0 {
		note("", "%s not within the bounds: that was another run", text.Count(*o, "pair"))
	}
	if r.Flows[0].LeftOut > 0 {
		note("left out: ", "%s, as the %s: %s", text.Count(r.Flows[0].LeftOut, "place"),
			r.leftOut.name(), *r.leftOut.LeftOut)
	}
}

// name says which place it is.
func (p *BoundsPlace) name() string {
	where := p.Image + " " + p.Address
	if p.File != "" {
		where = path.Base(p.File) + ":" + strconv.Itoa(p.Line)
	}
	where = " (" + names.Printable(where) + ")"
	room := TableColumns - len("return to  of ") - len(where)
	name := names.Fit(p.Routine, room/2)
	switch {
	case p.Callee == nil:
		return fmt.Sprintf("loop of %s%s", name, where)
	case p.Kind == overlapped.Into.String():
		return fmt.Sprintf("call by %s of %s%s", name, names.Fit(*p.Callee, room/2), where)
	}
	return fmt.Sprintf("return to %s of %s%s", name, names.Fit(*p.Callee, room/2), where)
}

func (p *BoundsPlace) write(out *bufio.Writer) {
	fmt.Fprintf(out, "\n%s\n", p.name())
	if p.LeftOut != nil {
		writeParagraph(out, "  left out: ", strings.Fields(*p.LeftOut))
		return
	}
	fmt.Fprintf(out, "  %10s %10s %10s  %s\n", "LOWER", "UPPER", "TRUTH",
		"BLOCKS OF THE FIRST ! OF THE SECOND")
	for i := range p.Paths {
		x := &p.Paths[i]
		front := fmt.Sprintf("  %10d %10d %10s  ", x.Lower, x.Upper, number(x.Truth))
		half := (TableColumns - len(front) - len(" ! ")) / 2
		fmt.Fprintf(out, "%s%s ! %s\n", front, blocksText(x.row.First, half), blocksText(
			x.row.Second, half))
	}
	if p.hidden > 0 {
		fmt.Fprintf(out, "  and %s: --paths 0 prints them\n", text.Count(p.hidden, "more pair"))
	}
}

// blocksText is the numbers of blocks, as plan --routine prints them, at most width columns wide.
func blocksText(blocks []int, width int) string {
	list := make([]string, len(blocks))
	for i, b := range blocks {
		list[i] = strconv.Itoa(b)
	}
	return names.ShortenMiddle(strings.Join(list, " "), width)
}

// WriteCSV writes the pairs of bounds, one a line.
func (r *BoundsJSON) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"kind", "image", "routine", "address", "callee", "first", "second",
		"lower", "upper", "truth"}}
	for i := range r.Places {
		p := &r.Places[i]
		callee := ""
		if p.Callee != nil {
			callee = *p.Callee
		}
		for _, x := range p.Paths {
			truth := ""
			if x.Truth != nil {
				truth = number(x.Truth)
			}
			lines = append(lines, []string{p.Kind, p.Image, p.Routine, p.Address, callee,
				strings.Join(x.First, " "), strings.Join(x.Second, " "),
				strconv.FormatUint(x.Lower, 10), strconv.FormatUint(x.Upper, 10), truth})
		}
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("write bounds: %w", err)
	}
	return nil
}

// WriteBoundsSummary writes a line for each of several bounds, and one for the sums of all, as in
// table 8 of the paper.
func WriteBoundsSummary(w io.Writer, list []*BoundsJSON) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%-10s %10s  %-33s  %s\n", "", "", "PATH COUNTS ALONE", "OVERLAPPING PATHS")
	fmt.Fprintf(out, "%-10s %10s  %16s %16s  %16s %16s %3s %4s\n", "PROGRAM", "REAL", "DEFINITE",
		"POTENTIAL", "DEFINITE", "POTENTIAL", "K", "MOST")
	var alone, all bounds.Flow
	known := true
	line := func(name string, alone, all BoundsSums, degrees string) {
		fmt.Fprintf(out, "%-10s %10s ", names.Fit(name, 10), number(all.Real))
		for i, n := range []uint64{alone.Definite, alone.Potential, all.Definite, all.Potential} {
			cell, real := strconv.FormatUint(n, 10), all.Real
			if i < 2 { // of other places, where some are left out
				real = alone.Real
			}
			if real != nil && *real > 0 {
				cell += fmt.Sprintf(" %7s", offReal(n, *real))
			}
			if i == 2 {
				out.WriteByte(' ')
			}
			fmt.Fprintf(out, " %16s", cell)
		}
		out.WriteString(degrees + "\n")
	}
	for _, r := range list {
		line(r.Program, r.Alone.BoundsSums, r.Flows[0].BoundsSums,
			fmt.Sprintf(" %3d %4d", r.Degree, r.GreatestDegree))
		alone.Add(r.Alone.flow())
		all.Add(r.Flows[0].flow())
		known = known && r.Flows[0].Real != nil
	}
	if len(list) > 1 {
		line("all", sums(alone, known), sums(all, known), "")
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write bounds: %w", err)
	}
	return nil
}

func (f *BoundsFlow) flow() bounds.Flow {
	x := bounds.Flow{Definite: f.Definite, Potential: f.Potential}
	if f.Real != nil {
		x.Real = *f.Real
	}
	return x
}

package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/names"
)

// Limits of the table.
const (
	// TallestRow is how many lines a subpath, or a sequence, has at most.
	TallestRow = 12
	tailOfRow  = 4 // of these, after the line that says what was left out
)

// WriteHot writes a report as a table 100 columns wide: a line for each path of a subpath, the same
// path several times in a row on one. SHARE is what ran within the subpath, CUM. what ran within it
// or one above it, each as a share of all that ran and nothing counted twice, so that neither
// exceeds 100 % (query.Subpath.Covered and Cumulative). The snapshot is the report's; where windows
// were recorded, numbers are those of these, and IN ALL is the interval that the count in the whole
// run is in.
func WriteHot(w io.Writer, s *wpp.Snapshot, r *query.HotReport) error {
	out := bufio.NewWriter(w)
	writeHotHeader(out, s, r)
	if len(r.Subpaths) > 0 {
		newHotTable(s, r).write(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write hot subpaths: %w", err)
	}
	return nil
}

func writeHotHeader(out *bufio.Writer, s *wpp.Snapshot, r *query.HotReport) {
	writeTime(out, s)
	WriteTitle(out, s, r.Threads)
	writeHotTotals(out, s, r)
}

// writeHotTotals writes what stands above the table, but for the lines that say what was recorded.
func writeHotTotals(out *bufio.Writer, s *wpp.Snapshot, r *query.HotReport) {
	total := unit(r.Total, r.Query.Metric)
	if r.Query.Metric != query.Executions {
		total += " in " + text.Count(r.Paths, "path")
	}
	writeWindows(out, s, "numbers")
	fmt.Fprintf(out, "Total: %s%s\n", total, inAll(s, r.InAll, r.Query.Metric))
	writeInexact(out, s)
	if r.Paths == 0 {
		return
	}
	if r.Unpriced > 0 || r.Unused > 0 {
		fmt.Fprintf(out, "Without a cost, taken as 0: %s; costs of what did not run: %s\n",
			text.Count(r.Unpriced, "path"), text.Count(r.Unused, "row"))
	}
	var covered uint64
	if n := len(r.Subpaths); n > 0 {
		covered = r.Subpaths[n-1].Cumulative
	}
	fmt.Fprintf(out, "Showing %d of %s, which cover %.2f%%\n", len(r.Subpaths),
		text.Count(r.Found, noun(s, cmp.Or(r.Query.Kind, query.Minimal))),
		percent(covered, r.Total))
	fmt.Fprintf(out, "Hot: %s long, at a cost of %s or more\n", lengths(r.Query),
		unit(r.MinCost, r.Query.Metric))
	switch {
	case r.Found == 0 && pathprofile.IsProfile(s):
		fmt.Fprintln(out, "None are: a lower -C shows what cost less")
	case r.Found == 0:
		fmt.Fprintln(out, "None are: -l 1 shows single paths, a lower -C what cost less")
	}
}

// WriteTitle writes the line that says what was recorded, and of how many threads a report is.
func WriteTitle(out *bufio.Writer, s *wpp.Snapshot, threads int) {
	title := "Command: " + names.Printable(strings.Join(s.Figures.Command, " "))
	tail := fmt.Sprintf(" (pid %d, %s)", s.Figures.PID, text.Count(threads, "thread"))
	if threads == 0 { // nothing ran of any
		tail = fmt.Sprintf(" (pid %d)", s.Figures.PID)
	}
	if runs := pathprofile.Runs(s); runs > 1 {
		if len(s.Figures.Command) == 0 && len(s.Images) > 0 { // they are of several
			title = ofImages(s)
		}
		tail = fmt.Sprintf(" (%s, %s)", text.Count(runs, "run"), text.Count(threads, "thread"))
	} else if len(s.Figures.Command) == 0 && len(s.Images) > 0 {
		// it was made of a trace, which has no command
		title, tail = "Trace: "+names.Printable(s.Images[0].Base()), fmt.Sprintf(" (%s)",
			text.Count(threads, "thread"))
	}
	fmt.Fprintf(out, "%s%s\n", names.ShortenMiddle(title, TableColumns-len(tail)), tail)
}

// ofImages names what runs of several commands were of: of one program, or of more.
func ofImages(s *wpp.Snapshot) string {
	var list []string
	for i := range s.Images {
		if name := names.Printable(s.Images[i].Base()); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	if len(list) == 1 {
		return "Program: " + list[0]
	}
	return "Images: " + strings.Join(list, ", ")
}

// writeInexact writes which counts of a path profile may be too low.
func writeInexact(out *bufio.Writer, s *wpp.Snapshot) {
	c, err := pathprofile.Of(s)
	if err != nil || c == nil {
		return
	}
	if s.Figures.Lost > 0 || s.Figures.Gaps > 0 {
		fmt.Fprintf(out, "Lost: %s: paths ran as often as is counted, or more often\n",
			text.Count(s.Figures.Lost, "event"))
	}
	if slices.Contains(c.Of, pathprofile.Most) {
		fmt.Fprintf(out, "A count of %d stands for that or more\n", uint64(pathprofile.Most))
	}
}

// noun is what a report calls a subpath of the kind.
func noun(s *wpp.Snapshot, k query.HotKind) string {
	switch {
	case pathprofile.IsProfile(s):
		return "hot path"
	case k == query.Larus:
		return "greedy hot subpath"
	}
	return string(k) + " hot subpath"
}

func lengths(q query.HotQuery) string {
	if q.MinLength == q.MaxLength {
		return text.Count(q.MinLength, "path")
	}
	return fmt.Sprintf("%d to %d paths", q.MinLength, q.MaxLength)
}

func unit(cost uint64, m query.Metric) string {
	switch m {
	case query.Instructions:
		return text.Count(cost, "instruction")
	case query.Executions:
		return text.Count(cost, "path")
	}
	return fmt.Sprintf("%d %s", cost, names.Fit(string(m), TableColumns/4))
}

// A hotTable is a report as lines, with the widths of its columns.
type hotTable struct {
	report *query.HotReport
	rows   [][]hotLine
	count  int // columns' widths
	all    int // 0: there is none
	length int
	name   int
	where  int
	room   int // of the columns behind the numbers
}

// A hotLine is a path that was executed several times in a row; without a label, paths left out;
// without times, what ran before a subpath.
type hotLine struct {
	label *Label
	times int
}

func newHotTable(s *wpp.Snapshot, r *query.HotReport) *hotTable {
	t := &hotTable{report: r, count: len("COUNT"), length: len("LEN")}
	labels := NewLabels(s)
	names := 0
	for i := range r.Subpaths {
		p := &r.Subpaths[i]
		t.count = max(t.count, len(strconv.FormatUint(p.Count, 10)))
		t.length = max(t.length, len(strconv.Itoa(len(p.Symbols))))
		if s.Figures.IsSampled() {
			t.all = max(t.all, len("IN ALL"), len(totalText(p.InAll)))
		}
		row := foldPaths(p.Symbols, labels)
		for _, l := range row {
			if l.label != nil {
				names = max(names, utf8.RuneCountInString(l.label.Name(TableColumns)))
				t.where = max(t.where, utf8.RuneCountInString(l.label.Where())+len(l.repeat()))
			}
		}
		for _, sym := range p.Before {
			row = append([]hotLine{{label: labels.Of(sym)}}, row...)
		}
		t.rows = append(t.rows, row)
	}
	t.room = TableColumns - utf8.RuneCountInString(t.numbers(&query.Subpath{}))
	room := t.room - 2
	t.name = min(names, max(room-t.where, room/2))
	t.where = min(t.where, room-t.name)
	return t
}

// foldPaths makes the lines of a subpath, the middle left out of those that are too many.
func foldPaths(symbols []uint32, labels *Labels) []hotLine {
	paths := make([]*Label, len(symbols))
	for i, sym := range symbols {
		paths[i] = labels.Of(sym)
	}
	return foldLabels(paths)
}

func foldLabels(paths []*Label) []hotLine {
	var lines []hotLine
	for i, l := range paths {
		if i > 0 && l == paths[i-1] {
			lines[len(lines)-1].times++
			continue
		}
		lines = append(lines, hotLine{l, 1})
	}
	if len(lines) <= TallestRow {
		return lines
	}
	head, tail := lines[:TallestRow-tailOfRow-1], lines[len(lines)-tailOfRow:]
	left := len(paths)
	for _, l := range head {
		left -= l.times
	}
	for _, l := range tail {
		left -= l.times
	}
	return append(append(head[:len(head):len(head)], hotLine{nil, left}), tail...)
}

func (l hotLine) repeat() string {
	if l.times == 1 {
		return ""
	}
	return " x" + strconv.Itoa(l.times)
}

func (t *hotTable) numbers(p *query.Subpath) string {
	return fmt.Sprintf("%6.2f%%  %6.2f%%  %*d  %s%*d  ", percent(p.Covered, t.report.Total),
		percent(p.Cumulative, t.report.Total),
		t.count, p.Count, t.inAll(totalText(p.InAll)), t.length, len(p.Symbols))
}

// inAll is a cell of the column, if there is one.
func (t *hotTable) inAll(cell string) string {
	if t.all == 0 {
		return ""
	}
	return fmt.Sprintf("%*s  ", t.all, cell)
}

func (t *hotTable) write(out *bufio.Writer) {
	fmt.Fprintf(out, "\n  SHARE     CUM.  %*s  %s%*s  SUBPATH\n", t.count, "COUNT", t.inAll("IN ALL"),
		t.length, "LEN")
	for i, row := range t.rows {
		numbers := t.numbers(&t.report.Subpaths[i])
		for _, l := range row {
			fmt.Fprintf(out, "%s%s\n", numbers, t.text(l))
			numbers = strings.Repeat(" ", len(numbers))
		}
	}
}

func (t *hotTable) text(l hotLine) string {
	if l.label == nil {
		return names.Ellipsis + " " + text.Count(l.times, "path") + " more " + names.Ellipsis
	}
	if l.times == 0 {
		return "after " + l.label.Name(t.room-len("after "))
	}
	repeat := l.repeat()
	return pad(l.label.Name(t.name), t.name) + "  " + l.label.whereIn(t.where-len(repeat)) + repeat
}

// HotJSON is what hot --json prints. Shares are fractions of 1; costs are in its metric. Where
// windows were recorded, counts and costs are those of these.
type HotJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Kind          query.HotKind `json:"kind"` // minimal, maximal or larus
	// what costs are counted in: instructions, count, or the column of a table
	Metric  query.Metric `json:"metric"`
	Threads int          `json:"threads"` // that were looked at
	Paths   uint64       `json:"paths"`   // executions of paths
	Total   uint64       `json:"total"`   // the cost of them
	// the cost of all that ran in the whole run, of which windows were recorded; null: not known,
	// or all of it was
	InAll     *TotalJSON `json:"total_in_all"`
	MinLength int        `json:"min_length"` // of a subpath, in paths
	MaxLength int        `json:"max_length"` // of a subpath, in paths
	MinCost   uint64     `json:"min_cost"`   // of a hot subpath
	// hot subpaths, before --top cuts them down
	Found int `json:"found"`
	// distinct paths that the table of costs does not name
	Unpriced int `json:"unpriced,omitempty"`
	// rows of it that name no path of the snapshot
	Unused int `json:"unused,omitempty"`
	// the share of the program's own CPU time that was traced; null: not known, but at most
	// sampled_most
	Sampled *float64 `json:"sampled"`
	// what sampled is at least, 95 times of 100; null where sampled is, or is 1
	SampledLeast *float64 `json:"sampled_least"`
	SampledMost  *float64 `json:"sampled_most"` // what it is at most; null where it is 1
	// where all CPU time of the process went, by samples; null: none were taken
	CPUTime  *TimeJSON     `json:"cpu_time"`
	Subpaths []SubpathJSON `json:"subpaths"` // the hottest first
}

// SubpathJSON is a hot subpath.
type SubpathJSON struct {
	Share float64 `json:"share"` // of covered in total
	// share of what this subpath or one before it covers
	Cumulative float64 `json:"cumulative"`
	Count      uint64  `json:"count"` // executions; those that overlap count each
	// executions in the whole run, of which windows were recorded; null: not known, or all of it
	// was
	InAll *TotalJSON `json:"count_in_all"`
	Cost  uint64     `json:"cost"` // count times the cost of its paths
	// cost of what ran within it, each execution of a path counted once
	Covered uint64 `json:"covered"`
	Length  int    `json:"length"` // in paths
	// the path that ran directly before, where these are only executions behind it
	Before []*Label `json:"before,omitempty"`
	Paths  []*Label `json:"paths"` // in the order in which they ran
}

// NewHotJSON is the object of a report, every path of every subpath spelt out. Shares are fractions
// of 1; costs are in the report's metric. The snapshot is the report's; where it is of a share of
// the run, counts and costs are estimates of the whole. It fails where its samples are damaged.
func NewHotJSON(s *wpp.Snapshot, r *query.HotReport) (*HotJSON, error) {
	cpuTime, err := timeJSON(s)
	if err != nil {
		return nil, err
	}
	report := &HotJSON{
		SchemaVersion, r.Query.Kind, r.Query.Metric, r.Threads, r.Paths, r.Total,
		totalJSON(r.InAll), r.Query.MinLength, r.Query.MaxLength,
		r.MinCost, r.Found, r.Unpriced, r.Unused, known(query.Sampled(&s.Figures), 0),
		known(s.Figures.SampledLeast, 0), known(s.Figures.SampledMost, 0), cpuTime, []SubpathJSON{},
	}
	labels := NewLabels(s)
	for _, p := range r.Subpaths {
		row := SubpathJSON{query.Share(p.Covered, r.Total), query.Share(p.Cumulative, r.Total),
			p.Count, totalJSON(p.InAll), p.Cost, p.Covered, len(p.Symbols), nil, nil}
		for _, sym := range p.Before {
			row.Before = append(row.Before, labels.Of(sym))
		}
		for _, sym := range p.Symbols {
			row.Paths = append(row.Paths, labels.Of(sym))
		}
		report.Subpaths = append(report.Subpaths, row)
	}
	return report, nil
}

// WriteHotJSON writes NewHotJSON as one JSON object.
func WriteHotJSON(w io.Writer, s *wpp.Snapshot, r *query.HotReport) error {
	object, err := NewHotJSON(s, r)
	if err != nil {
		return fmt.Errorf("write hot subpaths: %w", err)
	}
	return WriteJSON(w, object, "hot subpaths")
}

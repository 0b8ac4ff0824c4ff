package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// WriteFlat writes up to top routines of a report, all where top is 0, as a table 100 columns wide:
// a line for each. SHARE is that of the CPU time, with the interval that it is in, where there are
// samples, else that of the cost. Calls and paths are those that were recorded; IN ALL
// is the interval that the calls of the whole run are in, where windows were recorded. The snapshot
// is the report's.
func WriteFlat(w io.Writer, s *wpp.Snapshot, r *profile.FlatReport, top int) error {
	out := bufio.NewWriter(w)
	writeTime(out, s)
	WriteTitle(out, s, r.Threads)
	writeWindows(out, s, "calls and paths")
	total := unit(r.Total, r.Metric)
	if r.Metric != query.Executions {
		total += " in " + text.Count(r.Paths, "path")
	}
	fmt.Fprintf(out, "Total: %s%s\n", total, inAll(s, r.InAll, r.Metric))
	writeFlatTable(out, s, r, top)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write routines: %w", err)
	}
	return nil
}

// writeWindows says of a recording in windows that numbers are of these alone.
func writeWindows(out *bufio.Writer, s *wpp.Snapshot, what string) {
	if f := &s.Figures; f.IsSampled() {
		fmt.Fprintf(out, "Sampled: %s of its own CPU time, in %s: %s are those of the windows\n",
			SampledText(f), text.Count(f.Windows, "window"), what)
	}
}

// writeFlatTable writes the table alone, and the line that says what it shows.
func writeFlatTable(out *bufio.Writer, s *wpp.Snapshot, r *profile.FlatReport, top int) {
	shown := r.Routines
	if top > 0 {
		shown = shown[:min(top, len(shown))]
	}
	by := string(r.Metric)
	switch {
	case r.Samples > 0:
		by = "CPU time"
	case r.Metric == query.Executions:
		by = "paths"
	}
	fmt.Fprintf(out, "Showing %d of %s, by share of %s\n", len(shown),
		text.Count(len(r.Routines), "routine"), by)
	if len(shown) > 0 {
		newFlatTable(s, r, shown).write(out)
	}
}

// A flatTable is routines as lines, with the widths of its columns.
type flatTable struct {
	report *profile.FlatReport
	rows   [][5]string // calls, in all, paths, routine, hottest path
	shares []string
	widths [5]int
	inAll  bool // there is a column of that
}

func newFlatTable(
	s *wpp.Snapshot, r *profile.FlatReport, shown []profile.RoutineFigures,
) *flatTable {
	t := &flatTable{report: r, inAll: s.Figures.IsSampled(),
		widths: [5]int{len("CALLS"), 0, len("PATHS"), len("ROUTINE"), 0}}
	if t.inAll {
		t.widths[1] = len("IN ALL")
	}
	labels := NewLabels(s)
	for i := range shown {
		x := &shown[i]
		row := [5]string{"-", totalText(x.CallsInAll), "-", nameOf(x, labels), "not traced"}
		if x.Routine == profile.NoRoutine {
			row[4] = elsewhere(x.Time)
		} else if s.Routines[x.Routine].LeftOut == "" {
			row[0], row[2] = strconv.FormatUint(x.Calls, 10), strconv.FormatUint(x.Paths, 10)
			row[4] = "-"
		}
		if x.Paths > 0 {
			l := labels.Of(x.Hottest)
			row[4] = fmt.Sprintf("#%d %.0f%% %s", l.Path, percent(hottestOf(x)), l.Place())
		}
		t.rows, t.shares = append(t.rows, row), append(t.shares, t.share(x))
		for k, text := range row {
			t.widths[k] = max(t.widths[k], utf8.RuneCountInString(text))
		}
	}
	const gap = 2
	room := TableColumns - len(t.shares[0]) - t.widths[0] - t.widths[2] - 4*gap
	if t.inAll {
		room -= t.widths[1] + gap
	}
	t.widths[3] = min(t.widths[3], max(room-t.widths[4], room/2))
	t.widths[4] = min(t.widths[4], room-t.widths[3])
	return t
}

// nameOf is what a routine is called: in the snapshot, or by its file.
func nameOf(x *profile.RoutineFigures, labels *Labels) string {
	if x.Routine == profile.NoRoutine {
		return names.Printable(x.Time.Name)
	}
	return labels.names.Routine(x.Routine)
}

// elsewhere says where a routine is that is none of the snapshot's.
func elsewhere(t *profile.RoutineTime) string {
	if t.Kind == profile.JITTime {
		return "JIT code"
	}
	return names.Printable(t.File) + ", not traced"
}

// hottestOf is the hottest path of a routine as a part of all: of the cost, where there is any.
func hottestOf(x *profile.RoutineFigures) (part, whole uint64) {
	if x.Cost == 0 {
		return x.HottestCount, x.Paths
	}
	return x.HottestCost, x.Cost
}

// share is the first column, or two.
func (t *flatTable) share(x *profile.RoutineFigures) string {
	if t.report.Samples == 0 {
		return fmt.Sprintf("%6.2f%%", percent(x.Cost, t.report.Total))
	}
	share := t.report.Time(x)
	lo, hi := share.Interval()
	return fmt.Sprintf("%6s  %11s", percentOf(share), fmt.Sprintf("%.1f-%.1f%%", 100*lo, 100*hi))
}

func (t *flatTable) write(out *bufio.Writer) {
	share := "  SHARE"
	if t.report.Samples > 0 {
		share = " SHARE     INTERVAL"
	}
	out.WriteByte('\n')
	t.line(out, share, [5]string{"CALLS", "IN ALL", "PATHS", "ROUTINE", "HOTTEST PATH"})
	for i, row := range t.rows {
		row[3] = names.Shorten(row[3], t.widths[3])
		row[4] = names.ShortenMiddle(row[4], t.widths[4])
		t.line(out, t.shares[i], row)
	}
}

func (t *flatTable) line(out *bufio.Writer, share string, row [5]string) {
	inAll := ""
	if t.inAll {
		inAll = fmt.Sprintf("%*s  ", t.widths[1], row[1])
	}
	line := fmt.Sprintf("%s  %*s  %s%*s  %s  %s", share, t.widths[0], row[0], inAll, t.widths[2],
		row[2], pad(row[3], t.widths[3]), row[4])
	out.WriteString(strings.TrimRight(line, " ") + "\n")
}

// FlatJSON is what hot --routines --json prints. Shares are fractions of 1; costs are in its
// metric. Of a recording in windows, all is what ran in these, but the samples and what is in all.
type FlatJSON struct {
	SchemaVersion int          `json:"schema_version"`
	Metric        query.Metric `json:"metric"`  // what costs are counted in: instructions or count
	Threads       int          `json:"threads"` // that were looked at
	Paths         uint64       `json:"paths"`   // executions of paths
	Total         uint64       `json:"total"`   // the cost of them
	// the cost of all that ran in the whole run, of which windows were recorded; null: not known,
	// or all of it was
	InAll   *TotalJSON `json:"total_in_all"`
	Samples *uint64    `json:"samples"` // of the CPU time, in all code; null: there are none
	Windows uint64     `json:"windows"` // that were traced; 0: all the time was
	// the share of the program's own CPU time that was traced; null: not known, but at most
	// sampled_most
	Sampled *float64 `json:"sampled"`
	// what sampled is at least, 95 times of 100; null where sampled is, or is 1
	SampledLeast *float64      `json:"sampled_least"`
	SampledMost  *float64      `json:"sampled_most"` // what it is at most; null where it is 1
	Found        int           `json:"found"`        // routines, before --top cuts them down
	Routines     []RoutineJSON `json:"routines"`     // by falling share
}

// RoutineJSON is what ran of a routine, without those that it calls.
type RoutineJSON struct {
	// a name that no other routine of the snapshot has; of other files and of JIT code, what these
	// call it
	Routine string `json:"routine"`
	// base name of the file that the code is in; of JIT code, what its memory is called
	Image string `json:"image"`
	// of its entry; absent: not known
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // of its entry; absent: not known
	// of all samples, where there are any, else of the total
	Share float64 `json:"share"`
	// of the interval that its share of the CPU time is in, 95 times of 100; null: there are no
	// samples
	Least   *float64 `json:"least"`
	Most    *float64 `json:"most"`    // of the same
	Samples *uint64  `json:"samples"` // that are in it; null: there are none at all
	Traced  bool     `json:"traced"`  // else it is here for its samples
	// activations whose beginning was recorded; null: it was not traced
	Calls *uint64 `json:"calls"`
	// calls in the whole run, of which windows were recorded; null: not known, or all of it was
	CallsInAll *TotalJSON `json:"calls_in_all"`
	PathsInAll *TotalJSON `json:"paths_in_all"` // paths in the whole run, likewise
	Paths      *uint64    `json:"paths"`        // executions of paths; null: it was not traced
	Cost       *uint64    `json:"cost"`         // of these; null: it was not traced
	Hottest    *Label     `json:"hottest"`      // the path that cost most; null: none ran
	// executions of that path; absent: none ran
	HottestCount uint64 `json:"hottest_count,omitempty"`
	HottestCost  uint64 `json:"hottest_cost,omitempty"` // of these; absent: 0
}

// NewFlatJSON is the object of up to top routines of a report, all where top is 0. The snapshot is
// the report's. It fails where its samples are damaged.
func NewFlatJSON(s *wpp.Snapshot, r *profile.FlatReport, top int) (*FlatJSON, error) {
	if _, err := profile.CPUTime(s); err != nil {
		return nil, err
	}
	labels := NewLabels(s)
	f := &s.Figures
	object := &FlatJSON{SchemaVersion, r.Metric, r.Threads, r.Paths, r.Total, totalJSON(r.InAll),
		known(r.Samples, 0), f.Windows, known(query.Sampled(f), 0), known(f.SampledLeast, 0),
		known(f.SampledMost, 0), len(r.Routines), []RoutineJSON{}}
	for i := range r.Routines {
		if top > 0 && i == top {
			break
		}
		object.Routines = append(object.Routines, routineJSON(s, labels, r, &r.Routines[i]))
	}
	return object, nil
}

// WriteFlatJSON writes NewFlatJSON as one JSON object.
func WriteFlatJSON(w io.Writer, s *wpp.Snapshot, r *profile.FlatReport, top int) error {
	object, err := NewFlatJSON(s, r, top)
	if err != nil {
		return err
	}
	return WriteJSON(w, object, "routines")
}

func routineJSON(s *wpp.Snapshot, labels *Labels, r *profile.FlatReport,
	x *profile.RoutineFigures) RoutineJSON {
	if x.Routine == profile.NoRoutine {
		row := RoutineJSON{Routine: x.Time.Name, Image: x.Time.File}
		row.setTime(r, x)
		return row
	}
	from := &s.Routines[x.Routine]
	row := RoutineJSON{Routine: labels.names.Routine(x.Routine), Image: s.Images[from.Image].Base(),
		Share: query.Share(x.Cost, r.Total), Traced: from.LeftOut == ""}
	row.File, row.Line = entryOf(s, from)
	row.setTime(r, x)
	if row.Traced {
		row.Calls, row.Paths, row.Cost = &x.Calls, &x.Paths, &x.Cost
		row.CallsInAll, row.PathsInAll = totalJSON(x.CallsInAll), totalJSON(x.PathsInAll)
	}
	if x.Paths > 0 {
		row.Hottest, row.HottestCount, row.HottestCost = labels.Of(x.Hottest), x.HottestCount,
			x.HottestCost
	}
	return row
}

// setTime sets the share of the CPU time, where there are samples.
func (row *RoutineJSON) setTime(r *profile.FlatReport, x *profile.RoutineFigures) {
	if r.Samples > 0 {
		share := r.Time(x)
		lo, hi := share.Interval()
		row.Share, row.Least, row.Most, row.Samples = share.Value(), &lo, &hi, &x.Samples
	}
}

// entryOf is the place of a routine's first instruction; "": it is not known.
func entryOf(s *wpp.Snapshot, r *wpp.Routine) (file string, line int) {
	for i := range r.Blocks {
		if b := &r.Blocks[i]; b.Addr == r.Entry && b.Line > 0 {
			return s.Files[b.File], b.Line
		}
	}
	return "", 0
}

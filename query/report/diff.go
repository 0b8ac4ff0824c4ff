package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/cluster"
	"wpptrace/query/names"
)

// A diffTable writes the report on two snapshots.
type diffTable struct {
	report *query.DiffReport
	labels [2]*Labels
}

func newDiffTable(a, b *wpp.Snapshot, r *query.DiffReport) *diffTable {
	return &diffTable{r, [2]*Labels{NewLabels(a), NewLabels(b)}}
}

// WriteDiff writes a report as three tables, of routines, paths and subpaths: a line for each path
// of a difference, the same path several times in a row on one. COST is that in the second snapshot
// less that in the first, or with DiffQuery.Share in percent of all. Of snapshots in windows its
// RANGE stands behind it, where the true one lies. The snapshots are the report's.
func WriteDiff(w io.Writer, a, b *wpp.Snapshot, r *query.DiffReport) error {
	out := bufio.NewWriter(w)
	metric := r.Query.Hot.Metric
	t := newDiffTable(a, b, r)
	fmt.Fprintf(out, "Total: %s, then %s\n", unit(r.TotalA, metric), unit(r.TotalB, metric))
	fmt.Fprintf(out, "Showing %d of %s that changed%s\n", len(r.Routines),
		text.Count(r.Found[2], "routine"), hiddenText(r.Hidden[2]))
	t.write(out, "ROUTINE", r.Routines)
	fmt.Fprintf(out, "\nShowing %d of %s that changed%s\n", len(r.Paths),
		text.Count(r.Found[0], "path"), hiddenText(r.Hidden[0]))
	t.write(out, "PATH", r.Paths)
	fmt.Fprintf(out, "\nShowing %d of %s that changed%s\n", len(r.Subpaths),
		text.Count(r.Found[1], "hot subpath"), hiddenText(r.Hidden[1]))
	t.write(out, "SUBPATH", r.Subpaths)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write differences: %w", err)
	}
	return nil
}

// hiddenText says how many differences are not listed because they may be by chance.
func hiddenText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; of %d more it may be by chance", n)
}

// DiffCaveats returns what bears on how sure a report's differences are, a line each.
func DiffCaveats(r *query.DiffReport) (list []string) {
	if r.Unsure != nil {
		return []string{fmt.Sprintf("it is not known which differences are by chance: %v",
			r.Unsure)}
	}
	for i, n := range r.Windows {
		if n > 0 && n < cluster.Few {
			list = append(list, fmt.Sprintf("the %s snapshot has few windows, %d: intervals are "+
				"wide, and much that differs may not be listed", [...]string{"first",
				"second"}[i], n))
		}
	}
	return list
}

func (t *diffTable) write(out *bufio.Writer, title string, list []query.Difference) {
	if len(list) == 0 {
		return
	}
	interval := ""
	if t.isSampled() {
		interval = fmt.Sprintf("  %24s", "RANGE")
	}
	fmt.Fprintf(out, "\nCHANGE  %14s%s  %10s  %10s  %s\n", "COST", interval, "COUNT", "THEN", title)
	for i := range list {
		d := &list[i]
		numbers := fmt.Sprintf("%-6s  %14s%s  %10d  %10d  ", d.Change, t.delta(d), t.interval(d),
			d.CountA, d.CountB)
		if title == "ROUTINE" {
			label := t.labels[d.Paths[0].Snapshot].Of(d.Paths[0].Symbol)
			fmt.Fprintf(out, "%s%s\n", numbers,
				names.Fit(label.Routine, TableColumns-len(numbers)))
			continue
		}
		for _, l := range foldLabels(t.paths(d)) {
			path := names.Ellipsis + " " + text.Count(l.times, "path") + " more " + names.Ellipsis
			if l.label != nil {
				path = l.label.Name(TableColumns-len(numbers)-len(l.repeat())) + l.repeat()
			}
			fmt.Fprintf(out, "%s%s\n", numbers, path)
			numbers = fmt.Sprintf("%*s", len(numbers), "")
		}
	}
}

func (t *diffTable) paths(d *query.Difference) (list []*Label) {
	for _, p := range d.Paths {
		list = append(list, t.labels[p.Snapshot].Of(p.Symbol))
	}
	return list
}

// isSampled reports whether it is said how sure differences are.
func (t *diffTable) isSampled() bool {
	return t.report.Windows != [2]int{} && t.report.Unsure == nil
}

// interval is where the true difference of shares lies, in a column of its own; with a mark where
// the difference may be by chance.
func (t *diffTable) interval(d *query.Difference) string {
	if !t.isSampled() {
		return ""
	}
	text := "not known"
	if c := d.Certainty; c != nil {
		text = fmt.Sprintf("%+.4f%% to %+.4f%%", 100*c.Lo, 100*c.Hi)
	}
	if d.Chance {
		text = "? " + text
	}
	return fmt.Sprintf("  %24s", text)
}

// delta is by how much a cost, or share, rose.
func (t *diffTable) delta(d *query.Difference) string {
	switch {
	case t.report.Query.Share:
		return fmt.Sprintf("%+.4f%%", 100*(d.ShareB-d.ShareA))
	case d.CostB >= d.CostA:
		return fmt.Sprintf("+%d", d.CostB-d.CostA)
	}
	return fmt.Sprintf("-%d", d.CostA-d.CostB)
}

// DiffJSON is what diff --json prints. Shares are fractions of 1.
type DiffJSON struct {
	SchemaVersion int `json:"schema_version"`
	// what costs are counted in: instructions, or count
	Metric query.Metric `json:"metric"`
	// shares of the cost of all were compared, not costs
	ByShare bool   `json:"by_share"`
	TotalA  uint64 `json:"total_a"` // the cost of all that ran in the first
	TotalB  uint64 `json:"total_b"` // and in the second
	// paths that changed, before --top cuts them down
	FoundPaths int `json:"found_paths"`
	// hot subpaths that changed, before --top cuts them down
	FoundSubpaths int `json:"found_subpaths"`
	// paths besides whose difference may be by chance, so that they are not listed; 0 with --all
	HiddenPaths int `json:"hidden_paths"`
	// and hot subpaths
	HiddenSubpaths int `json:"hidden_subpaths"`
	// windows of the first in which anything ran; 0: all was traced, or that is not known
	WindowsA int `json:"windows_a"`
	WindowsB int `json:"windows_b"` // and of the second
	// why it is not known which differences are by chance; null: it is, or all are exact
	Unsure *string `json:"unsure"`
	// routines that changed, before --top cuts them down
	FoundRoutines int `json:"found_routines"`
	// and besides, as hidden_paths
	HiddenRoutines int `json:"hidden_routines"`
	// with what all of their paths ran and cost; paths has one of them
	Routines []DifferenceJSON `json:"routines"`
	Paths    []DifferenceJSON `json:"paths"`    // those that changed most first
	Subpaths []DifferenceJSON `json:"subpaths"` // those that changed most first
}

// DifferenceJSON is a path or subpath that changed.
type DifferenceJSON struct {
	// new, gone, hotter, colder, or unseen: it ran in one, and the other does not trace all of it
	Change query.Change `json:"change"`
	Paths  []*Label     `json:"paths"`   // in the order in which they run
	CountA uint64       `json:"count_a"` // executions in the first
	CountB uint64       `json:"count_b"` // and in the second
	// of what ran within it in the first, each execution of a path counted once
	CostA  uint64  `json:"cost_a"`
	CostB  uint64  `json:"cost_b"`  // and in the second
	ShareA float64 `json:"share_a"` // of all that ran in the first
	ShareB float64 `json:"share_b"` // and in the second
	// of snapshots in windows: the true difference of the shares, share_b - share_a, is this at
	// least, with 95 % certainty; null: the shares are exact, or that is not known
	Low  *float64 `json:"low"`
	High *float64 `json:"high"` // and at most
	// how likely it is that shares which are the same seem to differ by as much; null as for low
	P *float64 `json:"p"`
	// it may be by chance: of those for which this is false, 5 % are by chance at most, on average
	Chance bool `json:"chance"`
}

// WriteDiffJSON writes a report as one JSON object, every path of every difference spelt out. The
// snapshots are the report's.
func WriteDiffJSON(w io.Writer, a, b *wpp.Snapshot, r *query.DiffReport) error {
	t := newDiffTable(a, b, r)
	return WriteJSON(w, DiffJSON{
		SchemaVersion: SchemaVersion, Metric: r.Query.Hot.Metric, ByShare: r.Query.Share,
		TotalA: r.TotalA, TotalB: r.TotalB, FoundPaths: r.Found[0], FoundSubpaths: r.Found[1],
		HiddenPaths: r.Hidden[0], HiddenSubpaths: r.Hidden[1], WindowsA: r.Windows[0],
		WindowsB: r.Windows[1], Unsure: unsureText(r), FoundRoutines: r.Found[2],
		HiddenRoutines: r.Hidden[2], Routines: t.list(r.Routines),
		Paths: t.list(r.Paths), Subpaths: t.list(r.Subpaths),
	}, "differences")
}

func (t *diffTable) list(differences []query.Difference) []DifferenceJSON {
	list := []DifferenceJSON{}
	for i := range differences {
		d := &differences[i]
		one := DifferenceJSON{Change: d.Change, Paths: t.paths(d), CountA: d.CountA,
			CountB: d.CountB, CostA: d.CostA, CostB: d.CostB, ShareA: d.ShareA, ShareB: d.ShareB,
			Chance: d.Chance}
		if c := d.Certainty; c != nil {
			one.Low, one.High, one.P = &c.Lo, &c.Hi, &c.P
		}
		list = append(list, one)
	}
	return list
}

func unsureText(r *query.DiffReport) *string {
	if r.Unsure == nil {
		return nil
	}
	text := r.Unsure.Error()
	return &text
}

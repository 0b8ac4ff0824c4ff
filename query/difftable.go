package query

import (
	"bufio"
	"fmt"
	"io"
)

// WriteDiff writes a report as two tables, of paths and of subpaths: a line for each path of a
// difference, the same path several times in a row on one. COST is that in the second snapshot less
// that in the first, or with DiffQuery.Share in percent of all.
func WriteDiff(w io.Writer, r *DiffReport) error {
	out := bufio.NewWriter(w)
	metric := r.Query.Hot.Metric
	fmt.Fprintf(out, "Total: %s, then %s\n", unit(r.TotalA, metric), unit(r.TotalB, metric))
	fmt.Fprintf(out, "Showing %d of %s that changed\n", len(r.Paths), plural(r.Found[0], "path"))
	r.writeTable(out, "PATH", r.Paths)
	fmt.Fprintf(out, "\nShowing %d of %s that changed\n", len(r.Subpaths), plural(r.Found[1], "hot subpath"))
	r.writeTable(out, "SUBPATH", r.Subpaths)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write differences: %w", err)
	}
	return nil
}

func (r *DiffReport) writeTable(out *bufio.Writer, title string, list []Difference) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\nCHANGE  %14s  %10s  %10s  %s\n", "COST", "COUNT", "THEN", title)
	for i := range list {
		d := &list[i]
		numbers := fmt.Sprintf("%-6s  %14s  %10d  %10d  ", d.Change, r.delta(d), d.CountA, d.CountB)
		for _, l := range foldLabels(d.Paths) {
			text := ellipsis + " " + plural(l.times, "path") + " more " + ellipsis
			if l.label != nil {
				text = l.label.name(TableColumns-len(numbers)-len(l.repeat())) + l.repeat()
			}
			fmt.Fprintf(out, "%s%s\n", numbers, text)
			numbers = fmt.Sprintf("%*s", len(numbers), "")
		}
	}
}

// delta is by how much a cost, or share, rose.
func (r *DiffReport) delta(d *Difference) string {
	switch {
	case r.Query.Share:
		return fmt.Sprintf("%+.4f%%", 100*(d.ShareB-d.ShareA))
	case d.CostB >= d.CostA:
		return fmt.Sprintf("+%d", d.CostB-d.CostA)
	}
	return fmt.Sprintf("-%d", d.CostA-d.CostB)
}

// WriteDiffJSON writes a report as one JSON object, every path of every difference spelt out.
// Shares are fractions of 1.
func WriteDiffJSON(w io.Writer, r *DiffReport) error {
	report := struct {
		SchemaVersion int          `json:"schema_version"`
		Metric        Metric       `json:"metric"`
		ByShare       bool         `json:"by_share"`
		TotalA        uint64       `json:"total_a"`
		TotalB        uint64       `json:"total_b"`
		FoundPaths    int          `json:"found_paths"`
		FoundSubpaths int          `json:"found_subpaths"`
		Paths         []Difference `json:"paths"`
		Subpaths      []Difference `json:"subpaths"`
	}{SchemaVersion, r.Query.Hot.Metric, r.Query.Share, r.TotalA, r.TotalB, r.Found[0], r.Found[1],
		append([]Difference{}, r.Paths...), append([]Difference{}, r.Subpaths...)}
	return WriteJSON(w, report, "differences")
}

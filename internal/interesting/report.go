package interesting

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"wpptrace/internal/text"
	"wpptrace/loader/plan"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Report says how compactly interesting paths are numbered. Its JSON form grows, within a
// version, by new members only.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program"`  // the file that was planned
	Snapshot      string `json:"snapshot"` // the file whose paths are of interest

	Paths    int   `json:"interesting_paths"` // all of which are numbered
	Counters int64 `json:"counters"`          // identifiers of all routines
	// of routines that are not traced, or not selected: not among the interesting ones
	Untraced int `json:"paths_not_traced"`
	// that the program does not have: not among the interesting ones
	Unknown int `json:"paths_not_found"`
	// routines of which paths that never ran are not among the interesting ones, for there are more
	// than 100: with --all-paths
	TooMany int `json:"routines_with_too_many_paths"`
	// probes of the plan that are hit for each interesting path, as often as these ran
	HitsPerPath *float64 `json:"hits_per_path"`

	// identifiers for each interesting path, of the routine in the middle
	Median *float64 `json:"median_compactness"`
	Some   int      `json:"routines_of_2_to_100_paths"` // that have as many interesting paths
	// of these, with 1.5 identifiers for each interesting path at most
	Compact int `json:"routines_of_2_to_100_paths_compact"`

	// what probes of their own take to count the paths, if that was asked for
	Probes *Probes `json:"probes"`

	Routines []Numbered `json:"routines"` // that have interesting paths

	example string // a path that was not found
}

// A Numbered is a routine with interesting paths.
type Numbered struct {
	Name        string  `json:"name"`              // demangled
	Entry       uint64  `json:"entry"`             // link-time address
	Paths       uint64  `json:"acyclic_paths"`     // all
	Interesting int     `json:"interesting_paths"` // of these
	Range       int64   `json:"range"`             // identifiers, and counters: from 0 to below it
	Compactness float64 `json:"compactness"`       // identifiers for each interesting path
}

// Probes are those that tell interesting paths from each other and from all others, and nothing
// else. Hits are those of the recording: a path stands for each time that any path ran in it.
type Probes struct {
	Others        string `json:"others"`                // what becomes of other paths: count or ignore
	Probes        int    `json:"probes"`                // how many
	SingleStepped int    `json:"single_stepped_probes"` // of these, ones that cost 40 times as much
	// paths that no probes tell from others: they are not counted
	NotTold int `json:"paths_not_told_apart"`
	// hits for each path that ran
	HitsPerPath *float64 `json:"hits_per_path"`
	SteppedHits *float64 `json:"single_stepped_hits_per_path"` // of these
	PlanHits    *float64 `json:"plan_hits_per_path"`           // of the plan that records all paths
	// the share of the paths that ran that the interesting ones are
	Share *float64 `json:"interesting_share"`
}

// What the paper plots (figure 16) and what it calls close to 1.
const (
	leastPaths, mostPaths = 2, 100
	compact               = 1.5
)

// What becomes of paths that are not interesting, where paths are counted by probes of their own.
const (
	CountOthers  = "count"  // all of a routine together
	IgnoreOthers = "ignore" // they may make no hit
)

// New numbers what a snapshot has recorded of a program whose file is called name, and reports it:
// see Read. It chooses probes that count it as well, unless Others is "". It fails where a routine
// has too many paths.
func New(p *plan.Plan, name string, c Choice) (*Report, error) {
	set, err := Read(p, c)
	if err != nil {
		return nil, err
	}
	r, err := Number(set, name, c.Snapshot)
	if err == nil && c.Others != "" {
		r.Probes = set.Count(c.Others == CountOthers).report(c.Others)
	}
	return r, err
}

// Number numbers a set of paths.
func Number(set *Set, name, snapshot string) (*Report, error) {
	r := &Report{SchemaVersion: report.SchemaVersion, Program: name, Snapshot: snapshot,
		Untraced: set.Untraced, Unknown: set.Unknown, TooMany: set.TooMany, example: set.Example,
		Routines: []Numbered{}}
	var measures []float64
	for _, x := range set.Routines {
		p, err := x.Numbering.Prefer(x.Paths)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", names.Printable(x.Routine.Name), err)
		}
		row := Numbered{x.Routine.Name, x.Routine.Addr, x.Numbering.Total, len(x.Paths), p.Range(),
			p.Compactness()}
		r.Routines = append(r.Routines, row)
		r.Paths += row.Interesting
		r.Counters += row.Range
		measures = append(measures, row.Compactness)
		if row.Interesting >= leastPaths && row.Interesting <= mostPaths {
			r.Some++
			if row.Compactness <= compact {
				r.Compact++
			}
		}
	}
	if len(measures) > 0 {
		slices.Sort(measures)
		r.Median = &measures[len(measures)/2]
	}
	if set.ran > 0 {
		hits := set.HitsPerPath()
		r.HitsPerPath = &hits
	}
	return r, nil
}

// WriteText writes a row for each figure and a line for each routine.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "%-15s "+format+"\n", append([]any{name}, args...)...)
	}
	row("program", "%s", names.Printable(r.Program))
	row("snapshot", "%s", names.Printable(r.Snapshot))
	row("interesting", "%s of %s", text.Count(r.Paths, "path"),
		text.Count(len(r.Routines), "routine"))
	if r.Untraced > 0 {
		row("not traced", "%d more, of routines left out or not selected", r.Untraced)
	}
	if r.Unknown > 0 {
		row("not found", "%d more, which are no paths of this program, as %s", r.Unknown,
			names.Fit(r.example, report.TableColumns-60))
	}
	if r.TooMany > 0 {
		row("too many", "paths of %s to have those that never ran",
			text.Count(r.TooMany, "routine"))
	}
	if r.HitsPerPath != nil {
		row("hits", "%.2f a path, as often as each ran", *r.HitsPerPath)
	}
	if r.Probes != nil {
		r.Probes.write(row)
	}
	if r.Median != nil {
		row("counters", "%d for all", r.Counters)
		row("compactness", "%.2f in the median", *r.Median)
	}
	if r.Some > 0 {
		row("", "at most %.1f in %.1f%% of %s with %d to %d interesting paths", compact,
			100*float64(r.Compact)/float64(r.Some), text.Count(r.Some, "routine"), leastPaths,
			mostPaths)
	}
	if len(r.Routines) > 0 {
		r.writeRoutines(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// write writes rows.
func (p *Probes) write(row func(name, format string, args ...any)) {
	row("probes", "%d that count them, %d of these single-stepped; others: %s", p.Probes,
		p.SingleStepped, p.Others)
	if p.HitsPerPath != nil {
		row("their hits", "%.2f for each path that ran, %.2f of these single-stepped", *p.HitsPerPath,
			*p.SteppedHits)
		row("", "%.2f by the plan that records all; %.1f%% of what ran is interesting", *p.PlanHits,
			100**p.Share)
	}
	if p.NotTold > 0 {
		row("not told", "%s, which no probes tell from others", text.Count(p.NotTold, "path"))
	}
}

func (r *Report) writeRoutines(out *bufio.Writer) {
	const front = 12 + 12 + 11 + 8 + 11 + 6
	fmt.Fprintf(out, "\n%12s %12s %11s %8s %11s  ROUTINE\n", "ENTRY", "PATHS", "INTERESTING",
		"RANGE", "COMPACTNESS")
	for _, x := range r.Routines {
		fmt.Fprintf(out, "%12x %12d %11d %8d %11.2f  %s\n", x.Entry, x.Paths, x.Interesting, x.Range,
			x.Compactness, names.Fit(x.Name, report.TableColumns-front))
	}
}

// WriteJSON writes one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	return report.WriteJSON(w, r, "the plan of interesting paths")
}

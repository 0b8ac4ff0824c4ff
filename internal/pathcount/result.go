package pathcount

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Result says how often interesting paths ran. Its JSON form grows, within a version, by new
// members only.
type Result struct {
	SchemaVersion int `json:"schema_version"`

	Probes int         `json:"probes"` // that counted
	Paths  []PathCount `json:"paths"`  // the interesting ones, those that ran most often first
	// by routine, how often paths ran that are not interesting; null where they were ignored
	Others []OtherCount `json:"others"`

	// routines whose other paths were to be counted, and some of which can make no hit
	OthersNotCounted int `json:"others_not_counted"`

	NotTold int `json:"paths_not_told_apart"` // that no probes tell from others: not among Paths
	Unknown int `json:"paths_not_found"`      // of the snapshot, which the program does not have
	// routines with more than 100 paths, of which only those are counted that ran: with --all-paths
	TooMany int `json:"routines_with_too_many_paths"`
	// hits that belong to no path, as its beginning was not seen: it began before, say
	UnknownHits uint64 `json:"unknown_hits"`
	LostHits    uint64 `json:"lost_hits"` // hits that could not be counted
	// times that a signal came, or a thread ended, amid the program's code: so many paths at most
	// count that were not gone on with, or do not count that a handler jumped to
	Amid uint64 `json:"interrupted"`
	// threads that had not ended: each may have been in the midst of a path that counts
	Threads int `json:"threads"`
}

// A PathCount is how often a path ran.
type PathCount struct {
	Routine string `json:"routine"` // as hot calls it, of the snapshot
	Entry   uint64 `json:"entry"`   // of the routine: its link-time address
	Path    uint64 `json:"path"`    // its number
	Count   uint64 `json:"count"`   // executions
	// it ran just so often, but for what threads are in the midst of; else hits could not be
	// counted, or signals came amid paths: one that is never gone on with may count, and one that a
	// handler jumped to may not
	Exact bool `json:"exact"`
}

// An OtherCount is how often paths of a routine ran that are not interesting.
type OtherCount struct {
	Routine string `json:"routine"` // as hot calls it, of the snapshot
	Entry   uint64 `json:"entry"`   // its link-time address
	Count   uint64 `json:"count"`   // executions of all of them
	Exact   bool   `json:"exact"`   // as of paths
}

// result reads the counters.
func (x *tracing) result() (*Result, error) {
	if err := x.session.Disable(); err != nil {
		return nil, err
	}
	counts, err := x.session.Read()
	if err != nil {
		return nil, err
	}
	r := &Result{SchemaVersion: report.SchemaVersion, Probes: len(x.tables.Sites),
		Paths: []PathCount{}, NotTold: x.chosen.Unclear, Unknown: x.set.Unknown,
		TooMany:     x.set.TooMany,
		UnknownHits: counts.Unknown, LostHits: counts.Full + counts.NoThread + counts.Unread,
		Amid: counts.Amid}
	if x.process.Alive() && !x.run.Over() {
		threads, err := x.process.Threads()
		if err != nil && x.process.Alive() {
			return nil, err
		}
		r.Threads = len(threads)
	}
	exact := r.LostHits == 0 && r.Amid == 0
	if x.options.others() {
		r.Others = []OtherCount{}
	}
	for i, c := range x.counted {
		first := x.tables.First[i]
		for k, number := range c.Answer.Paths {
			r.Paths = append(r.Paths, PathCount{c.Name, c.Routine.Addr, number,
				counts.Value(&c.Answer.Machine.Paths[k], first), exact})
		}
		if rest := c.Answer.Machine.Rest; rest != nil {
			r.Others = append(r.Others, OtherCount{c.Name, c.Routine.Addr,
				counts.Value(rest, first), exact})
		} else if x.options.others() {
			r.OthersNotCounted++
		}
	}
	slices.SortStableFunc(r.Paths, func(a, b PathCount) int {
		return cmp.Compare(b.Count, a.Count)
	})
	slices.SortStableFunc(r.Others, func(a, b OtherCount) int {
		return cmp.Compare(b.Count, a.Count)
	})
	return r, nil
}

// WriteJSON writes one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	return report.WriteJSON(w, r, "the counts of interesting paths")
}

// WriteText writes a line for each path, and for the others of each routine.
func (r *Result) WriteText(w io.Writer) error {
	const front = 16
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%14s  PATH\n", "COUNT")
	line := func(count uint64, name string) {
		fmt.Fprintf(out, "%14d  %s\n", count, names.Fit(name, report.TableColumns-front))
	}
	for _, p := range r.Paths {
		line(p.Count, fmt.Sprintf("%s#%d", p.Routine, p.Path))
	}
	for _, o := range r.Others {
		line(o.Count, "others of "+o.Routine)
	}
	if r.OthersNotCounted > 0 {
		fmt.Fprintf(out, "not counted: others of %s, some of which no probe is on\n",
			text.Count(r.OthersNotCounted, "routine"))
	}
	if r.NotTold > 0 {
		fmt.Fprintf(out, "not counted: %s that no probes tell from others\n",
			text.Count(r.NotTold, "path"))
	}
	if r.Unknown > 0 {
		fmt.Fprintf(out, "not found: %s, which this program does not have\n",
			text.Count(r.Unknown, "path"))
	}
	if r.TooMany > 0 {
		fmt.Fprintf(out, "not counted: paths that never ran of %s with more than 100\n",
			text.Count(r.TooMany, "routine"))
	}
	if r.UnknownHits > 0 {
		fmt.Fprintf(out, "not known: of which paths %s were, whose beginning was not seen\n",
			text.Count(r.UnknownHits, "hit"))
	}
	if r.Amid > 0 {
		fmt.Fprintf(out, "interrupted: %s amid paths: counts may be off by as many in all\n",
			text.Count(r.Amid, "time"))
	}
	if r.LostHits > 0 {
		fmt.Fprintf(out, "lost: %s, so that counts are not exact\n", text.Count(r.LostHits, "hit"))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write counts: %w", err)
	}
	return nil
}

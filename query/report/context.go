package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
)

// WriteContext writes up to top of what ran before and after, all where top is 0: an entry each,
// its count, its share of all executions, its paths.
func WriteContext(w io.Writer, s *wpp.Snapshot, c *query.Context, top int) error {
	out := bufio.NewWriter(w)
	labels := NewLabels(s)
	writeFitted(out, "", c.Name, " ran "+text.Count(c.Count, "time"))
	for _, side := range []struct {
		title string
		list  []query.Neighbour
	}{{"BEFORE", c.Before}, {"AFTER", c.After}} {
		shown := side.list
		if top > 0 {
			shown = shown[:min(top, len(shown))]
		}
		fmt.Fprintf(out, "\n%12s    SHARE  %s (%d of %d)\n", "COUNT", side.title, len(shown),
			len(side.list))
		for _, n := range shown {
			writeParagraph(out, fmt.Sprintf("%12d  %6.2f%%  ", n.Count, percent(n.Count, c.Count)),
				labels.words(n.Symbols))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write context: %w", err)
	}
	return nil
}

// ContextJSON is what context --json prints.
type ContextJSON struct {
	SchemaVersion int             `json:"schema_version"`
	Name          string          `json:"name"`   // as it was asked for
	Count         uint64          `json:"count"`  // executions of its paths
	Before        []NeighbourJSON `json:"before"` // what ran directly before, by falling count
	After         []NeighbourJSON `json:"after"`  // what ran directly after, by falling count
	Inlined
	Legend
}

// NeighbourJSON is what ran directly before or after executions of a path.
type NeighbourJSON struct {
	// in the order in which they ran; fewer than asked for at the beginning or the end of a thread
	Symbols []uint32 `json:"symbols"`
	Count   uint64   `json:"count"` // how often
}

// WriteContextJSON writes a context, up to top of each side, all where top is 0, as one JSON
// object; paths says what the symbols are.
func WriteContextJSON(w io.Writer, s *wpp.Snapshot, c *query.Context, top int) error {
	var all []uint32
	shown := func(list []query.Neighbour) []NeighbourJSON {
		out := []NeighbourJSON{}
		for i, n := range list {
			if top == 0 || i < top {
				out = append(out, NeighbourJSON(n))
				all = append(all, n.Symbols...)
			}
		}
		return out
	}
	report := ContextJSON{SchemaVersion: SchemaVersion, Name: c.Name, Count: c.Count,
		Before: shown(c.Before), After: shown(c.After), Inlined: inlinedOf(s, c.Name)}
	report.Legend = legendOf(s, all)
	return WriteJSON(w, report, "context")
}

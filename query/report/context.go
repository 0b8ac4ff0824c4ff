package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/rules"
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
		fmt.Fprintf(out, "\n%12s    SHARE  %s (%d of %d)\n", "COUNT", side.title, len(shown), len(side.list))
		for _, n := range shown {
			writeParagraph(out, fmt.Sprintf("%12d  %6.2f%%  ", n.Count, percent(n.Count, c.Count)), labels.words(n.Symbols))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write context: %w", err)
	}
	return nil
}

// ContextJSON is what context --json prints.
type ContextJSON struct {
	SchemaVersion int `json:"schema_version"`
	query.Context
	Inlined []rules.Copies `json:"also_inlined,omitempty"` // whose calls there are not counted
	Legend
}

// WriteContextJSON writes a context, up to top of each side, all where top is 0, as one JSON
// object; paths says what the symbols are.
func WriteContextJSON(w io.Writer, s *wpp.Snapshot, c *query.Context, top int) error {
	shown := *c
	var all []rules.Occurrence
	for _, list := range []*[]query.Neighbour{&shown.Before, &shown.After} {
		if top > 0 {
			*list = (*list)[:min(top, len(*list))]
		}
		*list = append([]query.Neighbour{}, *list...)
		for _, n := range *list {
			all = append(all, rules.Occurrence{Symbols: n.Symbols})
		}
	}
	report := ContextJSON{SchemaVersion, shown, rules.Inlined(s, c.Name), legendOf(s, all)}
	return WriteJSON(w, report, "context")
}

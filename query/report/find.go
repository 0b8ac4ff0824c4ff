package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/rules"
)

// WriteFind writes a report 100 columns wide: an entry for each occurrence, TID POSITION LENGTH
// PATHS, and the counts.
func WriteFind(w io.Writer, s *wpp.Snapshot, r *rules.FindReport) error {
	out := bufio.NewWriter(w)
	writeFitted(out, text.Count(r.Count, "occurrence")+" of ", r.Query.Pattern, " in "+text.Count(len(r.Threads), "thread"))
	if len(r.Threads) > 1 {
		for _, t := range r.Threads {
			fmt.Fprintf(out, "  %d in thread %d\n", t.Count, t.TID)
		}
	}
	if len(r.Occurrences) > 0 {
		fmt.Fprintf(out, "\n%8s  %12s  %6s  PATHS\n", "TID", "POSITION", "LENGTH")
	}
	labels := NewLabels(s)
	for _, o := range r.Occurrences {
		writeParagraph(out, fmt.Sprintf("%8d  %12d  %6d  ", o.TID, o.Position, o.Length), labels.stretch(o))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write occurrences: %w", err)
	}
	return nil
}

// FindJSON is what find --json prints.
type FindJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	Pattern       string              `json:"pattern"`
	Count         uint64              `json:"count"` // of occurrences
	Threads       []rules.ThreadCount `json:"threads"`
	Occurrences   []rules.Occurrence  `json:"occurrences"`            // those listed
	Inlined       []rules.Copies      `json:"also_inlined,omitempty"` // whose calls there are not counted
	Legend
}

// WriteFindJSON writes a report as one JSON object; paths says what the symbols of the occurrences
// are.
func WriteFindJSON(w io.Writer, s *wpp.Snapshot, r *rules.FindReport) error {
	report := FindJSON{SchemaVersion, r.Query.Pattern, r.Count, append([]rules.ThreadCount{}, r.Threads...), append([]rules.Occurrence{}, r.Occurrences...), rules.Inlined(s, r.Query.Pattern), legendOf(s, r.Occurrences)}
	return WriteJSON(w, report, "occurrences")
}

// A MarkLabel says what a symbol that is no path is, as dump names it.
type MarkLabel struct {
	Symbol uint32 `json:"symbol"`
	Mark   string `json:"mark"`
	N      uint64 `json:"n"`
}

// A Legend says what symbols are, by their numbers.
type Legend struct {
	Paths map[string]*Label    `json:"paths"`
	Marks map[string]MarkLabel `json:"marks,omitempty"`
}

// legendOf describes the paths in stretches, and the marks between them, by their symbols.
func legendOf(s *wpp.Snapshot, occurrences []rules.Occurrence) Legend {
	labels, l := NewLabels(s), Legend{make(map[string]*Label), make(map[string]MarkLabel)}
	for _, o := range occurrences {
		for _, sym := range o.Symbols {
			key := strconv.FormatUint(uint64(sym), 10)
			if p := &s.Symbols[sym]; p.IsMark {
				l.Marks[key] = MarkLabel{sym, p.Mark.String(), p.N}
			} else {
				l.Paths[key] = labels.Of(sym)
			}
		}
	}
	return l
}

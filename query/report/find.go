package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/rules"
)

// WriteFind writes a report 100 columns wide: an entry for each occurrence, TID POSITION LENGTH
// PATHS, and the counts.
func WriteFind(w io.Writer, s *wpp.Snapshot, r *rules.FindReport) error {
	out := bufio.NewWriter(w)
	writeFitted(out, text.Count(r.Count, "occurrence")+" of ", r.Query.Pattern,
		" in "+text.Count(len(r.Threads), "thread"))
	if len(r.Threads) > 1 {
		for _, t := range r.Threads {
			fmt.Fprintf(out, "  %d in thread %d\n", t.Count, t.TID)
		}
	}
	if len(r.Occurrences) > 0 {
		what := "PATHS"
		if r.Valued != nil {
			what = "VALUES, POSITION, WHAT: WHERE"
		}
		fmt.Fprintf(out, "\n%8s  %12s  %6s  %s\n", "TID", "POSITION", "LENGTH", what)
	}
	labels := NewLabels(s)
	for _, o := range r.Occurrences {
		if o.Match != nil {
			fmt.Fprintf(out, "%8d  %12d  %6d  %s\n", o.TID, o.Position, o.Length,
				boundText(o.Match))
			writeMatch(out, s, labels.names, strings.Repeat(" ", 32), o.Match)
			continue
		}
		writeParagraph(out, fmt.Sprintf("%8d  %12d  %6d  ", o.TID, o.Position, o.Length),
			labels.stretch(o))
	}
	writeValued(out, "", r.Valued)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write occurrences: %w", err)
	}
	return nil
}

// FindJSON is what find --json prints.
type FindJSON struct {
	SchemaVersion int               `json:"schema_version"`
	Pattern       string            `json:"pattern"`     // as it was asked for
	Count         uint64            `json:"count"`       // of occurrences, in all threads
	Threads       []ThreadCountJSON `json:"threads"`     // that were looked at
	Occurrences   []OccurrenceJSON  `json:"occurrences"` // those listed
	ValuedJSON
	Inlined
	Legend
}

// ThreadCountJSON is how often something was found in a thread.
type ThreadCountJSON struct {
	TID   int    `json:"tid"`   // the thread's id
	Count uint64 `json:"count"` // how often
}

// OccurrenceJSON is a stretch of a thread's stream of paths and marks.
type OccurrenceJSON struct {
	TID int `json:"tid"` // the thread's id
	// of its first symbol, from 0, as dump --from takes it; null: 2^64-1 or farther
	Position *uint64  `json:"position"`
	Length   *uint64  `json:"length"`  // in symbols; null: not known
	Symbols  []uint32 `json:"symbols"` // of a long one only the beginning
	// of a pattern with values, which has no symbols
	Match *MatchJSON `json:"match,omitempty"`
}

func occurrenceJSON(o rules.Occurrence) OccurrenceJSON {
	return OccurrenceJSON{o.TID, known(o.Position, math.MaxUint64), known(o.Length, 0), o.Symbols,
		nil}
}

// Inlined is, of the names that were asked for, those of routines that are inlined as well.
type Inlined struct {
	Copies []CopiesJSON `json:"also_inlined,omitempty"` // whose calls there are not counted
}

// CopiesJSON are places where code of a routine is inlined.
type CopiesJSON struct {
	Name string   `json:"name"` // of the routine that is inlined, as it was asked for
	Into []string `json:"into"` // the routines that ran code of it
}

func inlinedOf(s *wpp.Snapshot, texts ...string) (x Inlined) {
	for _, c := range rules.Inlined(s, texts...) {
		x.Copies = append(x.Copies, CopiesJSON(c))
	}
	return x
}

// WriteFindJSON writes a report as one JSON object; paths says what the symbols of the occurrences
// are.
func WriteFindJSON(w io.Writer, s *wpp.Snapshot, r *rules.FindReport) error {
	report := FindJSON{
		SchemaVersion: SchemaVersion, Pattern: r.Query.Pattern, Count: r.Count,
		Threads: []ThreadCountJSON{}, Occurrences: []OccurrenceJSON{},
		ValuedJSON: valuedJSON(r.Valued), Inlined: inlinedOf(s, r.Query.Pattern),
	}
	var all []uint32
	for _, t := range r.Threads {
		report.Threads = append(report.Threads, ThreadCountJSON(t))
	}
	n := names.Of(s)
	for _, o := range r.Occurrences {
		x := occurrenceJSON(o)
		x.Match = matchJSON(s, n, o.Match)
		report.Occurrences = append(report.Occurrences, x)
		all = append(all, o.Symbols...)
	}
	report.Legend = legendOf(s, all)
	return WriteJSON(w, report, "occurrences")
}

// A MarkLabel says what a symbol that is no path is, as dump names it.
type MarkLabel struct {
	Symbol uint32 `json:"symbol"` // its number in this snapshot
	Mark   string `json:"mark"`   // gap, resume, unwind, cut or handler
	// of a gap, how many events were lost, of unwind, how many activations were left; null: not
	// known
	N *uint64 `json:"n"`
}

// A Legend says what symbols are, by their numbers.
type Legend struct {
	Paths map[string]*Label    `json:"paths"`           // what the symbols are that are paths
	Marks map[string]MarkLabel `json:"marks,omitempty"` // what the others are, if there are any
}

// legendOf describes symbols.
func legendOf(s *wpp.Snapshot, symbols []uint32) Legend {
	labels, l := NewLabels(s), Legend{make(map[string]*Label), make(map[string]MarkLabel)}
	for _, sym := range symbols {
		key := strconv.FormatUint(uint64(sym), 10)
		if p := &s.Symbols[sym]; p.IsMark {
			l.Marks[key] = MarkLabel{sym, p.Mark.String(), known(p.N, 0)}
		} else {
			l.Paths[key] = labels.Of(sym)
		}
	}
	return l
}

package hotspots

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/internal/listing"
	"wpptrace/internal/valuing"
	"wpptrace/query"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// A Question is what is asked of a snapshot, as flags do.
type Question struct {
	// Note takes what there is to say of the answer, a line each time.
	Note func(format string, args ...any)

	flags          *pflag.FlagSet // those that were given, once they are read
	query          query.HotQuery
	cost           string
	costs, column  string // the table of costs that cost names; "": none
	larus, maximal bool
	routines, data bool
	callers        string
	lines          string
	disasm, binary string
	asJSON         bool
}

// Add adds the flags.
func (h *Question) Add(f *pflag.FlagSet) {
	h.flags, h.query = f, query.DefaultHotQuery()
	q := &h.query
	f.BoolVar(&h.routines, "routines", false, "print what ran by routine instead")
	f.StringVar(&h.callers, "callers", "", "print who called `ROUTINE` instead")
	f.StringVar(&h.lines, "lines", "", "print how often each line of `FILE` ran instead")
	f.StringVar(&h.disasm, "disasm", "", "print how often each instruction of `ROUTINE` ran instead")
	f.StringVar(&h.binary, "binary", "", "with --disasm: the program or library is `FILE`")
	f.IntVarP(&q.MinLength, "min-length", "l", q.MinLength, "least `PATHS` of a subpath")
	f.IntVarP(&q.MaxLength, "max-length", "L", q.MaxLength, "most `PATHS` of a subpath")
	f.FuncP("min-cost", "C", "least `COST` of a hot subpath, or share of all, as 5% (default 1%)",
		func(text string) error { return SetLeast(q, text) })
	f.StringVar(&h.cost, "cost", "", "`WHAT` a path costs: instructions: its own (the default), "+
		"count: 1, or a FILE[:COLUMN] of costs")
	f.BoolVar(&h.maximal, "maximal", false, "find the maximal hot subpaths")
	f.BoolVar(&h.larus, "larus", false, "find what Larus's figure 7 does")
	f.BoolVar(&h.data, "data", false, "of a recording of values: print hot sequences of addresses")
	f.IntVar(&q.Top, "top", 0, "print only the hottest `N`")
	f.IntSliceVar(&q.TIDs, "tid", nil, "only thread `TID` (repeatable)")
	f.BoolVar(&h.asJSON, "json", false, "print one JSON object")
}

// ofSubpaths are the flags that only subpaths have.
var ofSubpaths = []string{"min-length", "max-length", "min-cost", "cost", "maximal", "larus"}

// instead are the flags that ask for something else than subpaths.
var instead = []string{"routines", "callers", "lines", "disasm"}

// Check fails where flags do not go together, whatever the snapshot.
func (h *Question) Check([]string) (err error) {
	asked := slices.DeleteFunc(slices.Clone(instead),
		func(name string) bool { return !h.flags.Changed(name) })
	if len(asked) > 1 {
		return fmt.Errorf("both --%s and --%s: give one of them", asked[0], asked[1])
	}
	for _, name := range ofSubpaths {
		if len(asked) > 0 && h.flags.Changed(name) {
			return fmt.Errorf("--%s is about subpaths, and does not go with --%s", name, asked[0])
		}
	}
	switch {
	case h.data && (len(asked) > 0 || h.cost != ""):
		return errors.New("--data counts accesses, and goes with no --cost and no other question")
	case h.query.Top > 0 && (h.flags.Changed("lines") || h.flags.Changed("disasm")):
		return fmt.Errorf("--top does not go with --%s, which prints all", asked[0])
	case h.binary != "" && !h.flags.Changed("disasm"):
		return errors.New("--binary goes with --disasm alone")
	case h.larus && h.maximal:
		return errors.New("both --larus and --maximal: give one of them")
	case h.larus:
		h.query.Kind = query.Larus
	case h.maximal:
		h.query.Kind = query.Maximal
	}
	if h.query.Metric, h.costs, h.column, err = costs(h.cost); err != nil {
		return err
	}
	return h.query.Validate()
}

// Write prints the answer.
func (h *Question) Write(w io.Writer, s *wpp.Snapshot) error {
	switch h.query.FitTo(s, h.flags.Changed("min-length"), h.flags.Changed("max-length")); {
	case h.flags.Changed("callers"):
		return h.writeCallers(w, s)
	case h.flags.Changed("lines"):
		return listing.Lines(w, s, h.listed(h.lines))
	case h.flags.Changed("disasm"):
		return listing.Disasm(w, s, h.listed(h.disasm))
	case h.routines:
		return h.writeRoutines(w, s)
	case h.data:
		return valuing.HotData(w, s, h.query, h.asJSON)
	}
	return h.writeSubpaths(w, s)
}

func (h *Question) writeSubpaths(w io.Writer, s *wpp.Snapshot) (err error) {
	if h.costs != "" {
		if h.query.Table, err = readCosts(h.costs, h.column); err != nil {
			return err
		}
	}
	hot, err := query.Hot(s, h.query)
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteHotJSON(w, s, hot)
	}
	return report.WriteHot(w, s, hot)
}

// listed asks for a source file or a routine.
func (h *Question) listed(of string) *listing.Question {
	return &listing.Question{Of: of, Binary: h.binary, TIDs: h.query.TIDs, JSON: h.asJSON,
		Note: h.Note}
}

func (h *Question) writeRoutines(w io.Writer, s *wpp.Snapshot) error {
	flat, err := profile.Flat(s, h.query.TIDs...)
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteFlatJSON(w, s, flat, h.query.Top)
	}
	return report.WriteFlat(w, s, flat, h.query.Top)
}

func (h *Question) writeCallers(w io.Writer, s *wpp.Snapshot) error {
	callers, err := profile.CallersOf(s, h.callers, h.query.TIDs...)
	for _, caveat := range report.Caveats(s, h.callers) {
		h.Note("%s", caveat)
	}
	switch {
	case err != nil:
		return err
	case h.asJSON:
		return report.WriteCallersJSON(w, s, callers, h.query.Top)
	}
	return report.WriteCallers(w, s, callers, h.query.Top)
}

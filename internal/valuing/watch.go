package valuing

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// Watch is what wpptrace watch asks.
type Watch struct {
	query values.WatchQuery
	of    string // as it was asked for
	forms
}

// forms are the forms in which an answer is printed besides a table: none, or one of them.
type forms struct{ json, csv bool }

func (f *forms) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.csv, "csv", false, "print comma-separated values")
}

func (f *forms) check() error {
	if f.json && f.csv {
		return errors.New("--json and --csv: give one of them")
	}
	return nil
}

// Add adds the flags.
func (q *Watch) Add(f *pflag.FlagSet) {
	f.BoolVar(&q.query.WritesOnly, "writes", false, "only who wrote")
	f.IntVar(&q.query.TID, "tid", 0, "only thread `TID`")
	q.add(f)
}

// Check takes ADDRESS[:SIZE], or the name of a variable.
func (q *Watch) Check(args []string) error {
	q.of = args[0]
	if _, _, err := values.ParseBytes(q.of); err != nil && strings.Contains(q.of, ":") &&
		!strings.Contains(q.of, "::") {
		return err
	}
	return q.check()
}

// Write writes the answer. What is no address is a variable, and what may be both is one if there
// is one.
func (q *Watch) Write(w io.Writer, s *wpp.Snapshot) error {
	query := q.query
	var notNumber, noVariable error
	query.Addr, query.Size, notNumber = values.ParseBytes(q.of)
	if query.Variables, noVariable = values.VariablesNamed(s, q.of); noVariable != nil {
		query.Variables = nil
		if notNumber != nil {
			return fmt.Errorf("watch %s: it is no ADDRESS[:SIZE] in hex, and: %w", q.of, noVariable)
		}
	}
	switch {
	case q.json:
		return valuereport.WriteWatchJSON(w, s, q.of, query)
	case q.csv:
		return valuereport.WriteWatchCSV(w, s, query)
	}
	return valuereport.WriteWatch(w, s, query)
}

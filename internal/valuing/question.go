package valuing

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/query/tables"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// InFile is an error of an answer: where the file has no values it names it.
func InFile(file string, err error) error {
	if errors.Is(err, values.ErrNone) {
		return fmt.Errorf("%s: %w", file, values.ErrNone)
	}
	return err
}

// A Question is what is asked of a snapshot that has values: as flags do.
type Question struct {
	Stat      bool
	At        string // the instructions, as values.Find takes them
	Var       string // the variables, as values.VariablesNamed takes them
	Instance  uint64
	CSV       bool
	Histogram bool
}

// Add adds the flags.
func (q *Question) Add(f *pflag.FlagSet) {
	f.BoolVar(&q.Stat, "stat", false, "print how much of the values of SNAPSHOT is known")
	f.StringVar(&q.At, "at", "", "print what the instructions at `PLACE` computed, read and wrote: "+
		"FILE:LINE, ROUTINE, ROUTINE+OFFSET or ADDRESS")
	f.StringVar(&q.Var, "var", "", "print each value that the variable `NAME` took, or "+
		"ROUTINE.NAME, or what is behind it, as in NAME->FIELD[3].X and *NAME")
	f.Uint64Var(&q.Instance, "instance", 0, "with --at: of the `N`th execution alone, from 1; "+
		"with --var: of the Nth activation of its routine")
	f.BoolVar(&q.CSV, "csv", false, "with --at and --var: print a row for each value; with --stat: sizes and "+
		"speeds, as the tables and figures 8 and 9 of the paper")
	f.BoolVar(&q.Histogram, "histogram", false, "with --at and --var: print how often each value "+
		"came")
}

// Asks reports whether a snapshot is read, and nothing is recorded.
func (q *Question) Asks() bool { return q.Stat || q.At != "" || q.Var != "" }

// Wrong says what is wrong with the flags, those of others among them; "": nothing is. isGiven says
// of a flag whether it is given.
func (q *Question) Wrong(isGiven func(flag string) bool) string {
	forms := 0
	for _, name := range []string{"csv", "json", "histogram"} {
		if isGiven(name) {
			forms++
		}
	}
	switch {
	case q.At == "" && q.Var == "" && (forms > 0 || isGiven("instance")) &&
		!(q.Stat && q.CSV && forms == 1 && !isGiven("instance")):
		return "--instance, --json, --csv and --histogram need --at PLACE or --var NAME"
	case q.Var != "" && (q.Stat || q.At != ""):
		return "--var is a question of its own: give it without --at and --stat"
	case q.Stat && q.At != "":
		return "--stat and --at are two questions: give one of them"
	case forms > 1:
		return "--json, --csv and --histogram: give one of them"
	case isGiven("instance") && q.Instance == 0:
		return "--instance 0: the first is 1"
	}
	return ""
}

// Answer prints the answer, of the threads with these ids, or of all.
func (q *Question) Answer(w io.Writer, s *wpp.Snapshot, asJSON bool, tids []int) error {
	switch {
	case q.Stat && q.CSV:
		rows, err := tables.Make(s)
		if err != nil {
			return fmt.Errorf("values: %w", err)
		}
		return tables.CSV(w, rows)
	case q.Stat:
		return WriteStat(w, s)
	case q.Var != "":
		if err := q.variables(w, s, asJSON, tids); err != nil {
			return fmt.Errorf("values: %w", err)
		}
		return nil
	}
	where, err := values.Find(s, q.At)
	if err != nil {
		return err
	}
	asked := &values.Question{Where: where, Threads: tids, Instance: q.Instance}
	switch {
	case asJSON:
		return valuereport.WriteInstancesJSON(w, s, asked)
	case q.CSV:
		return valuereport.WriteInstancesCSV(w, s, asked)
	case q.Histogram:
		return valuereport.WriteHistogram(w, s, asked)
	}
	return valuereport.WriteInstances(w, s, asked)
}

func (q *Question) variables(w io.Writer, s *wpp.Snapshot, asJSON bool, tids []int) error {
	list, err := values.VariablesNamed(s, q.Var)
	if err != nil {
		return err
	}
	asked := &valuereport.VariableQuestion{Text: q.Var, Asked: list, Threads: tids,
		Instance: q.Instance}
	switch {
	case asJSON:
		return valuereport.WriteVariablesJSON(w, s, asked)
	case q.CSV:
		return valuereport.WriteVariablesCSV(w, s, asked)
	case q.Histogram:
		return valuereport.WriteVariablesHistogram(w, s, asked)
	}
	return valuereport.WriteVariables(w, s, asked)
}

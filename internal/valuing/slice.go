package valuing

import (
	"errors"
	"io"

	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/query/slice"
	"wpptrace/query/valuereport"
)

// Slice is what wpptrace slice asks.
type Slice struct {
	query        slice.Query
	instance     *pflag.Flag
	data, jumps  bool
	instructions bool
	forms
}

// Add adds the flags.
func (q *Slice) Add(f *pflag.FlagSet) {
	f.StringVar(&q.query.At, "at", "", "what `PLACE` computed: FILE:LINE, ROUTINE, ROUTINE+OFFSET or "+
		"ADDRESS")
	f.Uint64Var(&q.query.Instance, "instance", 0, "its execution `N`, from 1 on, as values --at numbers them "+
		"(default the last)")
	f.IntVar(&q.query.TID, "tid", 0,
		"in thread `TID` (default all, one after the other)")
	f.BoolVar(&q.query.Forward, "forward", false, "print what came of it, not what made it")
	f.BoolVar(&q.data, "data", false, "follow only registers, flags and memory")
	f.BoolVar(&q.jumps, "control", false, "follow only jumps and calls that decided")
	f.BoolVar(&q.instructions, "instructions", false, "print instructions, not source lines")
	f.Uint64Var(&q.query.Most, "most", slice.DefaultMost, "look at `N` instructions of the thread at "+
		"most: they take some 40 bytes each")
	q.add(f)
	q.instance = f.Lookup("instance")
}

// Check fails where the flags make no question.
func (q *Slice) Check([]string) error {
	switch {
	case q.query.At == "":
		return errors.New("--at says of which code: FILE:LINE, ROUTINE, ROUTINE+OFFSET or ADDRESS")
	case q.data && q.jumps:
		return errors.New("--data leaves out what --control leaves: give one of them")
	case q.instance.Changed && q.query.Instance < 1:
		return errors.New("--instance counts from 1")
	case q.query.Most == 0:
		return errors.New("--most 0: it looks at one instruction at least")
	}
	if err := q.check(); err != nil {
		return err
	}
	q.query.By = slice.Data | slice.Control
	if q.data {
		q.query.By = slice.Data
	} else if q.jumps {
		q.query.By = slice.Control
	}
	return nil
}

// Write writes the answer.
func (q *Slice) Write(w io.Writer, s *wpp.Snapshot) error {
	a, err := slice.Ask(s, q.query)
	if err != nil {
		return err
	}
	switch {
	case q.json:
		return valuereport.WriteSliceJSON(w, s, a, q.instructions)
	case q.csv:
		return valuereport.WriteSliceCSV(w, s, a, q.instructions)
	case q.instructions:
		return valuereport.WriteSlice(w, s, a)
	}
	return valuereport.WriteSliceLines(w, s, a)
}

package valuereport

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// WriteWatch writes a line for each access to some bytes: TID POSITION WHERE, LINE: ACCESS, and of
// variables which one, and of which activation. It streams, and takes the time of a replay of all
// threads that are asked for.
func WriteWatch(w io.Writer, s *wpp.Snapshot, q values.WatchQuery) (err error) {
	defer wpp.Recover(&err)
	out := bufio.NewWriter(w)
	n := names.Of(s)
	fmt.Fprintf(out, "%8s  %12s  WHERE, LINE: ACCESS\n", "TID", "POSITION")
	count := 0
	var missed values.Missed
	for x, err := range values.Watch(s, q, &missed) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		fmt.Fprintf(out, "%8d  %12d  %s:%s", x.TID, x.Executed.Symbol,
			wherePlace(s, n, placeWatched(&x)), executed.AppendAccess(nil, x.Access))
		if x.Asked != nil {
			fmt.Fprintf(out, "  %s", nameOf(s, x.Asked))
		}
		if x.Instance > 0 {
			fmt.Fprintf(out, " of activation %d", x.Instance)
		}
		fmt.Fprintln(out)
		count++
	}
	fmt.Fprint(out, text.Count(count, "access"))
	if missed.Unknown > 0 {
		fmt.Fprintf(out, ", and %d of which it is not known where", missed.Unknown)
	}
	if q.Variables != nil && !missed.WasInMemory {
		fmt.Fprint(out, "; it was nowhere in memory, as far as is known: values --var prints what it had")
	}
	fmt.Fprintln(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write accesses: %w", err)
	}
	return nil
}

func placeWatched(x *values.Watched) slice.Place {
	e := x.Executed
	return slice.Place{Routine: e.Routine, Block: e.Block, Insn: e.Place.Insn, Addr: e.Addr}
}

// WatchJSON is what watch --json prints: the accesses to some bytes.
type WatchJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Of            string `json:"of"` // as it was asked for
	// threads one after the other, in execution order
	Accesses []WatchedJSON `json:"accesses"`
	Unknown  int           `json:"unknown"` // accesses of which it is not known where they were
}

// A WatchedJSON is an access to bytes that are watched.
type WatchedJSON struct {
	Thread   int    `json:"thread"`         // id
	Position uint64 `json:"position"`       // in the thread's stream of paths and marks
	Routine  string `json:"routine"`        // of the instruction
	Offset   uint64 `json:"offset"`         // of the instruction from the routine's entry, bytes
	File     string `json:"file,omitempty"` // its source file; absent: not known
	Line     int    `json:"line,omitempty"` // its source line; absent: not known
	// the variable, or the part of it; absent: an address was asked for
	Variable string `json:"variable,omitempty"`
	// the number of the activation that has the variable, from 1; absent: it is not known, or it
	// has none
	Instance uint64 `json:"instance,omitempty"`
	AccessJSON
}

// WriteWatchJSON writes the accesses as a WatchJSON, on a line. It keeps none of them.
func WriteWatchJSON(w io.Writer, s *wpp.Snapshot, of string, q values.WatchQuery) (err error) {
	defer wpp.Recover(&err)
	name, err := report.Marshal(of)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	n := names.Of(s)
	separator := fmt.Sprintf(`{"schema_version":%d,"of":%s,"accesses":[`, report.SchemaVersion, name)
	first := separator
	var missed values.Missed
	for x, err := range values.Watch(s, q, &missed) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		row := watchedJSON(s, n, &x)
		text, err := report.Marshal(&row)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s", separator, text)
		separator = ","
	}
	if separator == first {
		out.WriteString(first)
	}
	fmt.Fprintf(out, `],"unknown":%d}`+"\n", missed.Unknown)
	return flushed(out, nil)
}

func watchedJSON(s *wpp.Snapshot, n *names.Names, x *values.Watched) WatchedJSON {
	p := placeWatched(x)
	row := WatchedJSON{Thread: x.TID, Position: x.Executed.Symbol, Routine: n.Routine(p.Routine),
		Offset: p.Addr - s.Routines[p.Routine].Entry, Instance: x.Instance,
		AccessJSON: accessJSON(x.Access)}
	row.File, row.Line = sourceAt(s, p)
	if x.Asked != nil {
		row.Variable = nameOf(s, x.Asked)
	}
	return row
}

// sourceAt is the source file and line of an instruction; "" and 0: they are not known.
func sourceAt(s *wpp.Snapshot, p slice.Place) (file string, line int) {
	span := spanOf(s, p)
	if span.Line == 0 {
		return "", 0
	}
	return s.Files[span.File], span.Line
}

// WriteWatchCSV writes a row for each access, under a heading.
func WriteWatchCSV(w io.Writer, s *wpp.Snapshot, q values.WatchQuery) (err error) {
	defer wpp.Recover(&err)
	out := csv.NewWriter(w)
	n := names.Of(s)
	rows := [][]string{{"thread", "position", "routine", "offset", "file", "line", "variable",
		"instance", "access", "address", "size", "value", "known"}}
	var missed values.Missed
	for x, err := range values.Watch(s, q, &missed) {
		if err != nil {
			return err
		}
		at := watchedJSON(s, n, &x)
		number, k := contents(x.Access)
		v := show(number, k)
		access := "read"
		if x.Access.Write {
			access = "write"
		}
		rows = append(rows, []string{strconv.Itoa(at.Thread),
			strconv.FormatUint(at.Position, 10), at.Routine, strconv.FormatUint(at.Offset, 10),
			at.File, blankZero(uint64(at.Line)), at.Variable, blankZero(at.Instance), access,
			hex(x.Access.Addr), strconv.Itoa(x.Access.Size), v.text, v.sure})
		if err := out.WriteAll(rows); err != nil {
			return fmt.Errorf("write accesses: %w", err)
		}
		rows = rows[:0]
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write accesses: %w", err)
	}
	return nil
}

// blankZero is a number, "" for 0.
func blankZero(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

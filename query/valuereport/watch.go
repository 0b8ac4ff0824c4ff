package valuereport

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// WriteWatch writes a line for each access to some bytes: TID POSITION WHERE, LINE: ACCESS. It
// streams, and takes the time of a replay of all threads that are asked for.
func WriteWatch(w io.Writer, s *wpp.Snapshot, q values.WatchQuery) (err error) {
	defer wpp.Recover(&err)
	out := bufio.NewWriter(w)
	n := names.Of(s)
	fmt.Fprintf(out, "%8s  %12s  WHERE, LINE: ACCESS\n", "TID", "POSITION")
	count, lost := 0, 0
	for x, err := range values.Watch(s, q, &lost) {
		if err != nil {
			return err
		}
		e := x.Executed
		p := slice.Place{Routine: e.Routine, Block: e.Block, Insn: e.Place.Insn, Addr: e.Addr}
		fmt.Fprintf(out, "%8d  %12d  %s:%s\n", x.TID, e.Symbol, wherePlace(s, n, p),
			executed.AppendAccess(nil, x.Access))
		count++
	}
	fmt.Fprint(out, text.Count(count, "access"))
	if lost > 0 {
		fmt.Fprintf(out, ", and %d of which it is not known where", lost)
	}
	fmt.Fprintln(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write accesses: %w", err)
	}
	return nil
}

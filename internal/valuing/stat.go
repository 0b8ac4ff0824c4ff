package valuing

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// mostPlaces is how many instructions of which something is unknown are listed.
const mostPlaces = 10

// WriteStat prints how much of the values of a snapshot is known. It replays all of them.
func WriteStat(w io.Writer, s *wpp.Snapshot) error {
	k, err := values.Count(s)
	if err != nil {
		return fmt.Errorf("count values: %w", err)
	}
	c, err := wet.CountsOf(s)
	if err != nil {
		return err
	}
	if k.Instructions == 0 && (c == nil || c.Hits == 0) {
		if _, err := fmt.Fprintln(w, values.ErrNothingRan); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return writeEnd(w, s)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, n, of uint64) {
		fmt.Fprintf(out, "%d\t%.2f%%\t  %s\n", n, 100*float64(n)/float64(max(of, 1)), name)
	}
	line("instructions", k.Instructions, k.Instructions)
	line("confirmed", k.Confirmed, k.Instructions)
	line("unconfirmed", k.Unconfirmed, k.Instructions)
	line("unknown", k.Unknown, k.Instructions)
	for cause, n := range k.Causes {
		line("unknown: "+values.Cause(cause).String(), n, k.Instructions)
	}
	for _, cause := range slices.Sorted(maps.Keys(k.NotEmulated)) {
		line("not emulated: "+cause.String(), k.NotEmulated[cause], k.Instructions)
	}
	if c != nil {
		line("hits", c.Hits, c.Hits)
		line("of which what was seen was lost", c.Missing, c.Hits)
		line("that were not as worked out", c.Wrong, c.Hits)
		line("loads", c.Loads, c.Loads)
		line("that read what was expected", c.Predicted, c.Loads)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if err := writePlaces(w, s, k); err != nil {
		return err
	}
	return writeEnd(w, s)
}

// writeEnd says of which routines the code was changed, by which signal the process ended, and
// where.
func writeEnd(w io.Writer, s *wpp.Snapshot) error {
	for _, say := range []func(*wpp.Snapshot) (string, error){changedCode, endOf} {
		text, err := say(s)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// endOf says by which signal the process ended, and where; "": by none.
func endOf(s *wpp.Snapshot) (string, error) {
	signal := valuereport.SignalOf(s)
	if signal == "" {
		return "", nil
	}
	for i := range s.Threads {
		e, err := values.FaultOf(s, i)
		if err != nil {
			return "", err
		}
		if e != nil {
			return fmt.Sprintf("ended by %s, in thread %d", valuereport.Fault(s, e), e.TID), nil
		}
	}
	return "ended by " + signal + ": no instruction that was traced faulted", nil
}

// writePlaces lists the instructions of which most is unknown.
func writePlaces(w io.Writer, s *wpp.Snapshot, k *values.Known) error {
	list := slices.SortedFunc(maps.Keys(k.Places), func(a, b values.Place) int {
		return cmp.Or(cmp.Compare(k.Places[b], k.Places[a]), cmp.Compare(a.Addr, b.Addr),
			cmp.Compare(a.Cause, b.Cause))
	})
	for _, at := range list[:min(mostPlaces, len(list))] {
		r := &s.Routines[at.Routine]
		if _, err := fmt.Fprintf(w, "unknown at %s+%#x: %d times: %s\n",
			names.Printable(r.Name), at.Addr-r.Entry, k.Places[at], at.Cause); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

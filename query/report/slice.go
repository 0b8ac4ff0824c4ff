package report

import (
	"bufio"
	"fmt"
	"io"
	"path"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/slice"
)

// WriteSlice writes a slice: an entry for each instruction, TIMES WHERE LINE VALUES, the nearest to
// the one that was asked for first, with the values of its execution that is the nearest.
func WriteSlice(w io.Writer, s *wpp.Snapshot, a *slice.Answer) error {
	out := bufio.NewWriter(w)
	n := names.Of(s)
	what := "what it depends on"
	if a.Query.Forward {
		what = "what depends on it"
	}
	fmt.Fprintf(out, "%s, execution %d of %d in thread %d: %s: %d of %s executed\n",
		where(s, n, a.At), a.Instance, a.Executions, a.TID, what, a.In,
		text.Count(a.Executed, "instruction"))
	if a.Unsure > 0 {
		fmt.Fprintf(out, "%s of which it is not known where: what they wrote is missing\n",
			text.Count(a.Unsure, "store"))
	}
	if a.Opaque > 0 {
		fmt.Fprintf(out, "%s executed that are not emulated: what they used is missing\n",
			text.Count(a.Opaque, "instruction"))
	}
	fmt.Fprintf(out, "\n%10s  WHERE, LINE: VALUES\n", "TIMES")
	for i := range a.Parts {
		p := &a.Parts[i]
		line := where(s, n, p.Place)
		if p.Last != nil {
			line += ":" + string(appendValues(nil, p.Last))
		}
		fmt.Fprintf(out, "%10d  %s\n", p.Times, line)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write a slice: %w", err)
	}
	return nil
}

// where is where an instruction is in the program, and its source line if that is known.
func where(s *wpp.Snapshot, n *names.Names, p slice.Place) string {
	at := fmt.Sprintf("%s+%#x", n.Routine(p.Routine), p.Addr-s.Routines[p.Routine].Entry)
	if line := lineOf(s, p); line != "" {
		return at + ", " + line
	}
	return at
}

// lineOf is the source line of an instruction, empty if it is not known.
func lineOf(s *wpp.Snapshot, p slice.Place) string {
	b := &s.Routines[p.Routine].Blocks[p.Block]
	file, line := b.File, b.Line
	for _, span := range b.Spans {
		if span.From <= p.Insn && p.Insn < span.To {
			file, line = span.File, span.Line
		}
	}
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", names.Printable(path.Base(s.Files[file])), line)
}

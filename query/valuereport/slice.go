package valuereport

import (
	"bufio"
	"cmp"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// WriteSlice writes a slice: an entry for each instruction, TIMES WHERE LINE VALUES, the nearest to
// the one that was asked for first, with the values of its execution that is the nearest.
func WriteSlice(w io.Writer, s *wpp.Snapshot, a *slice.Answer) error {
	out := bufio.NewWriter(w)
	n := names.Of(s)
	writeSliceHead(out, s, n, a)
	fmt.Fprintf(out, "\n%10s  WHERE, LINE: VALUES\n", "TIMES")
	for i := range a.Parts {
		p := &a.Parts[i]
		line := wherePlace(s, n, p.Place)
		if p.Last != nil {
			line += ":" + string(executed.Append(nil, p.Last))
		}
		line += foreignText(s, n, p)
		fmt.Fprintf(out, "%10d  %s\n", p.Times, line)
	}
	return flushSlice(out)
}

// WriteSliceLines writes a slice by source line: an entry for each, AWAY TIMES LINE VALUES, the
// nearest first. Values are what it read from memory and wrote there, or else what its first
// instruction computed that has computed anything.
//
// They are those of the nearest of its executions that are in the slice, whose number is behind
// them where there are several.
func WriteSliceLines(w io.Writer, s *wpp.Snapshot, a *slice.Answer) error {
	out := bufio.NewWriter(w)
	n := names.Of(s)
	writeSliceHead(out, s, n, a)
	fmt.Fprintf(out, "\n%6s %7s  LINE: VALUES\n", "AWAY", "TIMES")
	for _, l := range a.Lines(s) {
		var accesses, registers []byte
		foreign, executions := "", 0
		for _, i := range l.Parts {
			last := a.Parts[i].Last
			executions = max(executions, a.Parts[i].Times)
			if foreign == "" {
				foreign = foreignText(s, n, &a.Parts[i])
			}
			if last == nil {
				continue
			}
			for j := range last.Accesses {
				accesses = executed.AppendAccess(accesses, &last.Accesses[j])
			}
			if len(registers) == 0 {
				registers = executed.Append(nil, last)
			}
		}
		if len(accesses) == 0 {
			accesses = registers
		}
		if executions > 1 {
			accesses = fmt.Appendf(accesses, " (1 of %d)", executions)
		}
		fmt.Fprintf(out, "%6d %7d  %s:%s%s\n", l.Away, l.Times, whereLine(s, n, &l), accesses,
			foreign)
	}
	return flushSlice(out)
}

// whereLine is FILE:LINE in ROUTINE, and where that is inlined.
func whereLine(s *wpp.Snapshot, n *names.Names, l *slice.Line) string {
	routine := n.Routine(l.Routine)
	if l.Span.Line == 0 {
		return routine
	}
	at := ""
	for c := range s.Stack(l.Span.Call) {
		if at == "" {
			routine = cmp.Or(names.Printable(c.Name), "?")
		}
		if c.Line > 0 {
			at += ", inlined at " + report.SourceLine(s, c.File, c.Line)
		}
	}
	return report.SourceLine(s, l.Span.File, l.Span.Line) + " in " + routine + at
}

func writeSliceHead(out *bufio.Writer, s *wpp.Snapshot, n *names.Names, a *slice.Answer) {
	what := "what it depends on"
	if a.Query.Forward {
		what = "what depends on it"
	}
	first := a.At[0]
	at := wherePlace(s, n, first)
	switch {
	case a.Where.Kind == values.End && a.Faulted:
		at += ", " + cmp.Or(SignalOf(s), "a fault")
	case a.Where.Kind == values.End:
		at += ", the end"
	case a.Where.Kind == values.Line:
		at = whereLine(s, n, &slice.Line{Routine: first.Routine, Span: spanOf(s, first)})
	}
	fmt.Fprintf(out, "%s, execution %d of %d in thread %d: %s: %d of %s executed\n",
		at, a.Instance, a.Executions, a.TID, what, a.In,
		text.Count(a.Executed, "instruction"))
	if a.From != nil {
		fmt.Fprintf(out, "what ran before position %d was not looked at: --most N allows more than "+
			"%d instructions, of some 40 bytes each\n", *a.From, cmp.Or(a.Query.Most, slice.DefaultMost))
	}
	if a.To != nil {
		fmt.Fprintf(out, "what ran from position %d on was not looked at: --most N allows more than "+
			"%d instructions, of some 40 bytes each\n", *a.To, cmp.Or(a.Query.Most, slice.DefaultMost))
	}
	if a.Unsure > 0 {
		fmt.Fprintf(out, "%s of which it is not known where: what is written there is missing\n",
			text.Count(a.Unsure, "store"))
	}
	if a.Others > 0 {
		fmt.Fprintf(out, "%s of what code that is not traced wrote, or another thread: it ends "+
			"there\n", text.Count(a.Others, "read"))
	}
	if a.Doubtful > 0 {
		fmt.Fprintf(out, "%s of which the value is not known: others may have written there since "+
			"the thread did\n", text.Count(a.Doubtful, "read"))
	}
	if a.Opaque > 0 {
		fmt.Fprintf(out, "%s executed and not emulated: what is used there is missing\n",
			text.Count(a.Opaque, "instruction"))
	}
}

// foreignText says that others wrote what was read, and who that may have been.
func foreignText(s *wpp.Snapshot, n *names.Names, p *slice.Part) string {
	f := p.Foreign
	if f == nil || f.Read == nil {
		return ""
	}
	var text []byte
	if f.Read != p.Last {
		for i := range f.Read.Accesses {
			if !f.Read.Accesses[i].Write {
				text = executed.AppendAccess(text, &f.Read.Accesses[i])
			}
		}
	}
	text = append(text, ", which others wrote"...)
	if f.Since != nil {
		text = fmt.Appendf(text, " after %s", wherePlace(s, n, *f.Since))
	}
	for _, w := range f.Likely {
		text = fmt.Appendf(text, ", likely thread %d at %s", w.TID, wherePlace(s, n, w.Place))
	}
	return string(text)
}

func flushSlice(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write a slice: %w", err)
	}
	return nil
}

func wherePlace(s *wpp.Snapshot, n *names.Names, p slice.Place) string {
	return report.Where(s, n, values.Instruction{Routine: p.Routine, Addr: p.Addr}, spanOf(s, p))
}

func spanOf(s *wpp.Snapshot, p slice.Place) wpp.Span {
	return values.SpanOf(&s.Routines[p.Routine].Blocks[p.Block], p.Insn)
}

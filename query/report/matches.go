package report

import (
	"bufio"
	"fmt"
	"path"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/rules"
	"wpptrace/query/values"
)

// Where is where an instruction is in the program, ROUTINE+OFFSET, and its source line if that is
// known.
func Where(s *wpp.Snapshot, n *names.Names, at values.Instruction, span wpp.Span) string {
	text := fmt.Sprintf("%s+%#x", n.Routine(at.Routine), at.Addr-s.Routines[at.Routine].Entry)
	if span.Line > 0 {
		text += ", " + SourceLine(s, span.File, span.Line)
	}
	return text
}

// SourceLine is FILE:LINE, without the file's directory.
func SourceLine(s *wpp.Snapshot, file, line int) string {
	return names.Printable(path.Base(s.Files[file])) + ":" + strconv.Itoa(line)
}

// writeMatch writes a line for each deed of a match: its position, what of the pattern it is, and
// where.
func writeMatch(out *bufio.Writer, s *wpp.Snapshot, n *names.Names, front string,
	m *rules.Match) {
	for _, d := range m.Deeds {
		at := values.Instruction{Routine: d.Routine, Addr: d.Addr}
		fmt.Fprintf(out, "%s%8d  %s: %s\n", front, d.Position, names.Printable(d.Text),
			Where(s, n, at, spanOf(s, &d)))
	}
}

func spanOf(s *wpp.Snapshot, d *rules.Deed) wpp.Span {
	return values.SpanOf(&s.Routines[d.Routine].Blocks[d.Block], d.Insn)
}

// boundText is what the names of a pattern stand for in a match; "?" is behind what is unconfirmed.
func boundText(m *rules.Match) string {
	var list []string
	for _, b := range m.Bound {
		text := b.Name + "=" + hex(b.Value)
		if !b.IsConfirmed {
			text += "?"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// writeValued writes what a pattern with values could not say.
func writeValued(out *bufio.Writer, front string, v *rules.Valued) {
	if v == nil {
		return
	}
	if v.Undecided > 0 {
		fmt.Fprintf(out, "%scould not be decided, for want of a value: %s\n", front,
			text.Count(v.Undecided, "time"))
	}
	if v.Unnamed > 0 {
		fmt.Fprintf(out, "%s%s of external code by pointers: what it is called is not known\n",
			front, text.Count(v.Unnamed, "call"))
	}
}

// MatchJSON is where a pattern with values matches.
type MatchJSON struct {
	Bound []BindingJSON `json:"bound"` // what its names stand for
	// the calls, returns and accesses that it names, in order; of many, the first and the last
	Deeds []DeedJSON `json:"deeds"`
}

// BindingJSON is what a name in a pattern stands for.
type BindingJSON struct {
	Name      string `json:"name"`      // in the pattern
	Value     string `json:"value"`     // in hex
	Confirmed bool   `json:"confirmed"` // what was seen later agrees with it
}

// DeedJSON is a call, a return or an access to memory that a pattern names.
type DeedJSON struct {
	Text     string `json:"text"`           // as in the pattern
	Position uint64 `json:"position"`       // in the thread's stream of paths and marks
	Routine  string `json:"routine"`        // whose instruction was to run, or accessed memory
	Offset   uint64 `json:"offset"`         // of that from the routine's entry, bytes
	File     string `json:"file,omitempty"` // its source file; absent: not known
	Line     int    `json:"line,omitempty"` // its source line; absent: not known
}

func matchJSON(s *wpp.Snapshot, n *names.Names, m *rules.Match) *MatchJSON {
	if m == nil {
		return nil
	}
	x := &MatchJSON{[]BindingJSON{}, []DeedJSON{}}
	for _, b := range m.Bound {
		x.Bound = append(x.Bound, BindingJSON{b.Name, hex(b.Value), b.IsConfirmed})
	}
	for _, d := range m.Deeds {
		deed := DeedJSON{Text: d.Text, Position: d.Position, Routine: n.Routine(d.Routine),
			Offset: d.Addr - s.Routines[d.Routine].Entry}
		if span := spanOf(s, &d); span.Line > 0 {
			deed.File, deed.Line = s.Files[span.File], span.Line
		}
		x.Deeds = append(x.Deeds, deed)
	}
	return x
}

// ValuedJSON is what a pattern with values could not say; absent for others.
type ValuedJSON struct {
	// how often a value that is not known would have decided whether something matches
	Undecided *uint64 `json:"undecided,omitempty"`
	// calls of external code by pointers, of which it is not known what it is called
	Unnamed *uint64 `json:"unnamed,omitempty"`
}

func valuedJSON(v *rules.Valued) (x ValuedJSON) {
	if v != nil {
		x.Undecided, x.Unnamed = &v.Undecided, &v.Unnamed
	}
	return x
}

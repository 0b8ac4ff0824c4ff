package report

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/executed"
	"wpptrace/query/internal/stream"
	"wpptrace/query/names"
)

// A Form is a text form of a dump.
type Form string

// The forms. Fields are separated by spaces, those of Paths by tabs; addresses are link-time, in
// hex without 0x.
const (
	Insns Form = "insns" // TID IMAGE ADDRESS, a line for each instruction executed
	// TID IMAGE ADDRESS, a line for each basic block entered: where it begins
	Blocks Form = "blocks"
	// TID ROUTINE PATH START-KIND END-KIND FIRST-ADDRESS, a line for each path; - where no
	// instruction is known
	Paths Form = "paths"
	Ops   Form = "ops" // the operations of Larus 1999, section 2, one a line
	// the rules of each thread, then the paths that the terminals stand for
	Grammar Form = "grammar"
	Dot     Form = "dot" // the grammar of each thread as a graph for Graphviz
	// Of a snapshot that has values: TID IMAGE ADDRESS, a line for each instruction executed, then
	// REG=HEX for each general register that it wrote, r[ADDR:SIZE]=HEX for what it read from
	// memory and w[ADDR:SIZE]=HEX for what it wrote there. Behind a value: ?: it is not confirmed.
	// -: it is not known.
	Values Form = "values"
	// Values, and behind these f[FLAGS]=HEX: the flags that it used, and what they were, both as
	// the processor has them; and xmmN=HEX for the lower 16 bytes of each vector register that it
	// wrote
	AllValues Form = "values --all"
	// of a snapshot of bare symbols, one thread: these, as little-endian numbers of 32 bits; not
	// text
	Symbols Form = "symbols"
)

// Forms returns all forms.
func Forms() []Form { return append(textForms(), Values, Symbols) }

// textForms returns the forms of any snapshot.
func textForms() []Form { return []Form{Insns, Blocks, Paths, Ops, Grammar, Dot} }

// A Part is the symbols of a thread's stream, paths and marks, at the positions from From on and
// before To; Backward, the last comes first, and of its lines the last.
type Part struct {
	From, To uint64
	Backward bool
}

// Whole is the part that is all.
func Whole() Part { return Part{To: math.MaxUint64} }

// Dump writes a part of the streams of the threads with these ids, or of all threads when there are
// none, one thread after the other in the order of the snapshot. Marks are lines that begin with #:
// "#gap N" (N events lost; 0: how many is not known), "#resume", "#unwind N", "#cut", "#handler".
// Of a path whose beginning or end is not known, the instructions are listed that are known to have
// run.
//
// What is outside of a part is not expanded, so that it takes the time of query.Cursor.Seek, and
// then that of the dump of the part alone. Of the operations, the rules and the graph there are no
// parts.
//
// It streams, with up to 64 MB for the text of paths met before; the output may be larger than the
// snapshot by any factor. It fails when w does, when the form is none or not one for this snapshot,
// or when the snapshot has no such thread.
func Dump(w io.Writer, s *wpp.Snapshot, form Form, part Part, tids ...int) (err error) {
	defer wpp.Recover(&err)
	if !slices.Contains(Forms(), form) && form != AllValues {
		return fmt.Errorf("dump as %q: no such form: use one of %v", form, Forms())
	}
	if part != Whole() && !form.HasParts() {
		return fmt.Errorf("dump as %s: there are parts only of %s, %s and %s", form, Insns, Blocks,
			Paths)
	}
	threads, err := query.Threads(s, tids)
	if err != nil {
		return err
	}
	if form == Symbols {
		if err := checkSymbols(s, threads); err != nil {
			return fmt.Errorf("dump as %s: %w", form, err)
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	labels := NewLabels(s)
	for _, t := range threads {
		if err := dumpThread(out, labels, t, form, part); err != nil {
			return fmt.Errorf("dump thread %d as %s: %w", t.TID, form, err)
		}
	}
	if form == Grammar {
		writeAlphabet(out, labels)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("dump as %s: %w", form, err)
	}
	return nil
}

// HasParts reports whether a part of a stream can be dumped in the form.
func (f Form) HasParts() bool { return f == Insns || f == Blocks || f == Paths }

func dumpThread(out *bufio.Writer, labels *Labels, t *wpp.Thread, form Form, part Part) error {
	s, tid := labels.snapshot, strconv.Itoa(t.TID)
	switch form {
	case Insns:
		return writeStream(out, s, t, part,
			func(line []byte, sym uint32) []byte { return appendInstructions(line, s, tid, sym) })
	case Blocks:
		return writeStream(out, s, t, part,
			func(line []byte, sym uint32) []byte { return appendBlocks(line, s, tid, sym) })
	case Paths:
		return writeStream(out, s, t, part,
			func(line []byte, sym uint32) []byte { return appendPath(line, labels, tid, sym) })
	case Values:
		return writeValues(out, s, t, executed.Append)
	case AllValues:
		return writeValues(out, s, t, executed.AppendAll)
	case Ops:
		return writeOperations(out, labels, t)
	case Grammar:
		fmt.Fprintf(out, "# thread %d %s\n", t.TID, names.Printable(t.Name))
		_, err := t.Grammar.WriteASCII(out)
		return err
	case Dot:
		return t.Grammar.WriteDot(out, func(sym uint32) string { return terminalText(labels, sym) })
	default:
		return writeSymbols(out, s, t)
	}
}

// mostText bounds the text that writeStream keeps for the symbols that it has met.
const mostText = 64 << 20

// writeStream writes what render makes of each symbol of a thread; marks look the same in every
// form.
func writeStream(out *bufio.Writer, s *wpp.Snapshot, t *wpp.Thread, part Part,
	render func(text []byte, sym uint32) []byte) error {
	texts := make([][]byte, len(s.Symbols))
	kept := 0
	symbols := t.Grammar.Expand(0)
	if part != Whole() {
		symbols = stream.Range(t.Grammar, part.From, part.To, part.Backward)
	}
	for sym := range symbols {
		text := texts[sym]
		if text == nil {
			if p := &s.Symbols[sym]; p.IsMark {
				text = appendMark(nil, p.Mark, p.N)
			} else {
				text = render(nil, sym)
			}
			if part.Backward {
				text = reverseLines(text)
			}
			if kept += len(text); kept <= mostText {
				texts[sym] = text
			}
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func reverseLines(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte{'\n'})
	slices.Reverse(lines)
	return bytes.Join(lines, nil)
}

func appendMark(text []byte, m ops.Mark, n uint64) []byte {
	text = append(text, '#')
	text = append(text, m.String()...)
	if m == ops.Gap || m == ops.Unwind {
		text = strconv.AppendUint(append(text, ' '), n, 10)
	}
	return append(text, '\n')
}

func appendInstructions(text []byte, s *wpp.Snapshot, tid string, sym uint32) []byte {
	prefix := tid + " " + Field(s.ImageOf(sym).Base()) + " "
	for addr := range s.Instructions(sym) {
		text = append(text, prefix...)
		text = strconv.AppendUint(text, addr, 16)
		text = append(text, '\n')
	}
	return text
}

func appendBlocks(text []byte, s *wpp.Snapshot, tid string, sym uint32) []byte {
	prefix := tid + " " + Field(s.ImageOf(sym).Base()) + " "
	for piece := range s.Pieces(sym) {
		text = append(text, prefix...)
		text = strconv.AppendUint(text, piece.Block.Addr, 16)
		text = append(text, '\n')
	}
	return text
}

func appendPath(text []byte, labels *Labels, tid string, sym uint32) []byte {
	l := labels.Of(sym)
	fields := []string{tid, l.Routine, strconv.FormatUint(l.Path, 10), l.Start, l.End,
		cmp.Or(l.First, "-")}
	return append(append(text, strings.Join(fields, "\t")...), '\n')
}

func writeOperations(out *bufio.Writer, labels *Labels, t *wpp.Thread) error {
	fmt.Fprintf(out, "EnterThread %d\n", t.TID)
	s := labels.snapshot
	expander := ops.NewExpander(&operationWriter{out: out, names: labels.names})
	for sym := range t.Grammar.Expand(0) {
		if p := &s.Symbols[sym]; p.IsMark {
			expander.Mark(p.Mark, p.N)
		} else {
			expander.Path(p.Routine, p.Path, p.Start, p.End)
		}
		if _, err := out.Write(nil); err != nil { // what an earlier line met
			return err
		}
	}
	return nil
}

// An operationWriter is a sink that writes operations. Its writer remembers errors.
type operationWriter struct {
	out   *bufio.Writer
	names *names.Names
	line  []byte
}

func (w *operationWriter) EnterRoutine(routine int, _ ops.Caller) {
	w.out.WriteString("EnterRoutine ")
	w.out.WriteString(w.names.Routine(routine))
	w.out.WriteByte('\n')
}

func (w *operationWriter) NewPath(_ int, path, times uint64) {
	w.line = append(strconv.AppendUint(append(w.line[:0], "NewPath "...), path, 10), '\n')
	for range times {
		w.out.Write(w.line)
	}
}

func (w *operationWriter) LeaveRoutine() { w.out.WriteString("LeaveRoutine\n") }

func (w *operationWriter) Mark(m ops.Mark, n uint64) {
	w.line = appendMark(w.line[:0], m, n)
	w.out.Write(w.line)
}

// writeAlphabet says what the terminals of the grammars stand for.
func writeAlphabet(out *bufio.Writer, labels *Labels) {
	out.WriteString("# terminals\n")
	for sym := range labels.snapshot.Symbols {
		fmt.Fprintf(out, "# %d: %s\n", sym, terminalText(labels, uint32(sym)))
	}
}

func terminalText(labels *Labels, sym uint32) string {
	if p := &labels.snapshot.Symbols[sym]; p.IsMark {
		return strings.TrimSuffix(string(appendMark(nil, p.Mark, p.N)), "\n")
	}
	l := labels.Of(sym)
	return fmt.Sprintf("%s#%d %s", l.Routine, l.Path, l.Where())
}

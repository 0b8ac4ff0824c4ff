package values

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// A Where is instructions that somebody asks for, and what one execution of them is.
type Where struct {
	Text string // as it was given
	Kind Kind
	At   []Instruction // in the order of their addresses; none of End
}

// A Kind says what an execution is.
type Kind uint8

// The kinds.
const (
	// One: of any of the instructions, once.
	One Kind = iota
	// Call: the first instruction of a routine, where it is entered.
	Call
	// Line: those of a source line that a thread executed one after the other, in an activation of
	// a routine. What it calls in between, also inlined, does not end the execution; another line
	// does.
	Line
	// End: the last instruction of a thread, also one that faulted and so ended the process.
	End
)

// end is the text that stands for End.
const end = "end"

// Find is where a text stands for: FILE:LINE is the instructions of a source line, also those
// that are inlined elsewhere; ROUTINE is its calls; ROUTINE+OFFSET is an instruction by its
// distance in bytes from the routine's entry, in decimal or, with 0x, in hex; ADDRESS is one
// by its link-time address or that in the process, in hex; end is what a thread did last: see
// FindExecution. A routine that a compiler has given another name may be named as in the
// source: see names.Meant. It fails where there is no such instruction in a routine that was
// traced and ran, and with ErrNone where there are no values.
func Find(s *wpp.Snapshot, text string) (w *Where, err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return nil, ErrNone
	}
	w = &Where{Text: text}
	if text == end {
		w.Kind = End
	} else if file, line, ok := cutLine(text); ok {
		w.Kind = Line
		w.At, err = ofLine(s, file, line)
	} else {
		err = w.instruction(s, unwrapped(text))
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", names.Printable(text), err)
	}
	slices.SortFunc(w.At, func(a, b Instruction) int { return cmp.Compare(a.Addr, b.Addr) })
	return w, nil
}

// unwrapped is an instruction as it is meant: <sum+16> and *0x4010 are how debuggers write it.
func unwrapped(text string) string {
	if inner, ok := strings.CutPrefix(text, "<"); ok && strings.HasSuffix(inner, ">") {
		return strings.TrimSuffix(inner, ">")
	}
	if number, ok := strings.CutPrefix(text, "*"); ok {
		return number
	}
	return text
}

func cutLine(text string) (file string, line int, ok bool) {
	file, number, ok := cutLast(text, ':')
	line, err := strconv.Atoi(number)
	return file, line, ok && err == nil
}

func cutLast(text string, at byte) (before, behind string, found bool) {
	i := strings.LastIndexByte(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// instruction finds ROUTINE, ROUTINE+OFFSET or ADDRESS.
func (w *Where) instruction(s *wpp.Snapshot, text string) error {
	n := names.Of(s)
	routines, err := n.Meant(text)
	if err == nil {
		w.Kind = Call
		return w.behind(s, routines, 0)
	}
	name, offset, hasOffset := cutLast(text, '+')
	if by, wrong := strconv.ParseUint(offset, 0, 64); hasOffset && wrong == nil {
		if routines, err = n.Meant(name); err != nil {
			return err
		}
		return w.behind(s, routines, by)
	}
	if digits := strings.TrimPrefix(text, "0x"); digits != text || isNumber(digits) {
		return w.address(s, digits)
	}
	if hasOffset && name != "" && offset != "" {
		if _, wrong := n.Meant(name); wrong == nil {
			return fmt.Errorf("%s is no number of bytes: in hex it begins with 0x",
				names.Printable(offset))
		}
	}
	return err
}

// behind takes the instructions so many bytes behind the entries of some routines.
func (w *Where) behind(s *wpp.Snapshot, routines []int, offset uint64) error {
	var left []*wpp.Routine // in which no instruction begins there
	for _, i := range routines {
		r := &s.Routines[i]
		if isInstruction(r, r.Entry+offset) {
			w.At = append(w.At, Instruction{i, r.Entry + offset})
		} else {
			left = append(left, r)
		}
	}
	if len(w.At) > 0 || len(left) == 0 {
		return nil
	}
	return notThere(left[0])
}

// notThere says why a routine has no instruction at some place.
func notThere(r *wpp.Routine) error {
	name := names.Printable(r.Name)
	switch {
	case r.LeftOut == notSelected:
		return fmt.Errorf("%s was not traced: record it too, with -F '^%s$'", name, name)
	case r.LeftOut != "":
		return fmt.Errorf("%s was not traced: %s", name, names.Printable(r.LeftOut))
	case len(r.Blocks) == 0:
		return fmt.Errorf("%s was traced, and did not run", name)
	}
	return errors.New("no instruction that ran begins there: dump --as insns lists those")
}

// notSelected is Routine.LeftOut of one that -F did not name.
const notSelected = "not selected"

func isInstruction(r *wpp.Routine, addr uint64) bool {
	for i := range r.Blocks {
		at := r.Blocks[i].Addr
		for _, n := range r.Blocks[i].Lengths {
			if at == addr {
				return true
			}
			at += uint64(n)
		}
	}
	return false
}

// isNumber reports whether a text that names no routine is a number in hex: it begins with a digit
// from 0 to 9, as no name does.
func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 16, 64)
	return err == nil && text[0] <= '9'
}

// address takes the instruction at an address in hex: link-time, or else in the process.
func (w *Where) address(s *wpp.Snapshot, digits string) error {
	addr, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return fmt.Errorf("0x%s is no address in hex", names.Printable(digits))
	}
	code, err := wet.CodeOf(s)
	if err != nil {
		return err
	}
	biasOf := func(image int) uint64 { return 0 }
	for range 2 {
		for i := range s.Routines {
			r := &s.Routines[i]
			if at := addr - biasOf(r.Image); isInstruction(r, at) {
				w.At = append(w.At, Instruction{i, at})
			}
		}
		if len(w.At) > 0 {
			return nil
		}
		biasOf = code.Bias
	}
	for i := range s.Routines {
		r := &s.Routines[i]
		for _, at := range [2]uint64{addr, addr - code.Bias(r.Image)} {
			if slices.ContainsFunc(r.Ranges,
				func(x wpp.Range) bool { return x.Lo <= at && at < x.Hi }) {
				return fmt.Errorf("it is %s+%#x: %w", names.Printable(r.Name), at-r.Entry,
					notThere(r))
			}
		}
	}
	return errors.New("it is no address of the program: dump --as values prints those")
}

func ofLine(s *wpp.Snapshot, file string, line int) (list []Instruction, err error) {
	found, err := profile.SourceFile(s, file)
	if err != nil {
		return nil, err
	}
	for r := range s.Routines {
		for i := range s.Routines[r].Blocks {
			b := &s.Routines[r].Blocks[i]
			at := b.Addr
			for k, n := range b.Lengths {
				x := SpanOf(b, k)
				if x.Line == line && line > 0 && path.Clean(s.Files[x.File]) == found {
					list = append(list, Instruction{r, at})
				}
				at += uint64(n)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no routine that was traced and ran has code of that line%s: hot "+
			"--lines lists those that ran", leftOut(s))
	}
	return list, nil
}

// leftOut says that routines were left out, if some were, and how to record them.
func leftOut(s *wpp.Snapshot) string {
	n := 0
	for i := range s.Routines {
		if s.Routines[i].LeftOut == notSelected {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d were not traced: -F names those that are)", n, len(s.Routines))
}

// SpanOf is where an instruction of a block is in the source, in the innermost of the calls that
// are inlined there. Its Line is 0 if that is not known.
func SpanOf(b *wpp.Block, insn int) wpp.Span {
	for _, span := range b.Spans {
		if span.From <= insn && insn < span.To {
			return span
		}
	}
	if len(b.Spans) == 0 && (insn == 0 || b.Line == b.Last) {
		return wpp.Span{File: b.File, Line: b.Line}
	}
	return wpp.Span{}
}

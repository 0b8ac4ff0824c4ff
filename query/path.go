package query

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
)

// WritePath writes what the paths of this name are, ROUTINE#N as in the table of hot subpaths: how often each ran, and a line for each block, or each part of one that is inlined from elsewhere, with its
// addresses, instructions, source lines and inlined calls. Of a name, "..." stands for what the table has left out, and @ADDRESS may be missing. It fails when the
// snapshot has no such path.
func WritePath(w io.Writer, s *wpp.Snapshot, name string) error {
	frequencies, err := NewFrequencies(s)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	labels, found := newLabels(s), false
	for i := range s.Symbols {
		if sym := uint32(i); !s.Symbols[i].IsMark && labels.matches(sym, name) {
			found = true
			writePath(out, s, labels.of(sym), frequencies.Symbol(sym))
		}
	}
	if !found {
		return fmt.Errorf("look for path %s: %s: name one as the table of hot subpaths does, ROUTINE#NUMBER", printable(name), labels.missing(name))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write path %s: %w", printable(name), err)
	}
	return nil
}

// matches reports whether a path has the name.
func (l *labels) matches(sym uint32, name string) bool {
	p := &l.snapshot.Symbols[sym]
	routine, ok := strings.CutSuffix(name, "#"+strconv.FormatUint(p.Path, 10))
	return ok && l.isNamed(p.Routine, routine)
}

// missing says why no path has the name.
func (l *labels) missing(name string) string {
	i := strings.LastIndexByte(name, '#')
	if i < 0 {
		return "it has no number"
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 64)
	if err != nil {
		return "its number is none"
	}
	for r := range l.snapshot.Routines {
		routine := &l.snapshot.Routines[r]
		switch {
		case !l.isNamed(r, name[:i]):
		case n >= routine.Paths:
			return fmt.Sprintf("the routine has %s", plural(routine.Paths, "path"))
		default:
			return "it did not run"
		}
	}
	return "there is no such routine"
}

// isShort reports whether short is the text, or what shortenMiddle may make of it.
func isShort(short, text string) bool {
	head, tail, cut := strings.Cut(short, ellipsis)
	return short == text || cut && len(text) >= len(head)+len(tail) && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
}

func writePath(out *bufio.Writer, s *wpp.Snapshot, l *label, count uint64) {
	fmt.Fprintf(out, "%s#%d in %s, from %s to %s: %s, ran %s\n", l.Routine, l.Path, printable(l.Image), l.Start, l.End,
		plural(l.Instructions, "instruction"), plural(count, "time"))
	row := func(addresses, instructions, source string) {
		line := fmt.Sprintf("  %-17s  %5s  %s", addresses, instructions, source)
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("ADDRESSES", "INSNS", "SOURCE")
	for p := range s.Pieces(l.Symbol) {
		for span := range p.Spans() {
			sources := source(s, l.Routine, span)
			row(addresses(wpp.Piece{Block: p.Block, From: span.From, To: span.To}), strconv.Itoa(span.To-span.From), sources[0])
			for _, line := range sources[1:] {
				row("", "", line)
			}
		}
	}
}

// addresses are those of the first and the last instruction of a piece.
func addresses(p wpp.Piece) string {
	first := p.Addr()
	last := first
	for _, n := range p.Block.Lengths[p.From : p.To-1] {
		last += uint64(n)
	}
	if last == first {
		return hex(first)
	}
	return hex(first) + "-" + hex(last)
}

// source is the place of a span in the source, "" if it is not known, and behind it, for what is inlined, the place of each call up to the one in the routine that has the code.
func source(s *wpp.Snapshot, routine string, span wpp.Span) []string {
	place := func(before string, file, first, last int) string {
		if first == 0 {
			return ""
		}
		return before + printable(s.Files[file]) + ":" + lines(first, last) + " "
	}
	var out []string
	line := place("", span.File, span.Line, span.Last)
	for c := range s.Stack(span.Call) {
		out = append(out, line+"in "+cmp.Or(printable(c.Name), "?"))
		line = "inlined " + place("at ", c.File, c.Line, c.Line)
	}
	if span.Call != 0 {
		line += "in " + routine
	}
	return append(out, line)
}

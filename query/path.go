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

// WritePath writes what the paths of this name are, ROUTINE#N as in the table of hot subpaths: how
// often each ran, and a line for each block, or each part of one that is inlined from elsewhere,
// with its addresses, instructions, source lines and inlined calls. Of a name, "..." stands for
// what the table has left out, and @ADDRESS may be missing. It fails when the snapshot has no such
// path. The routine may be in quotes.
func WritePath(w io.Writer, s *wpp.Snapshot, name string) error {
	frequencies, err := NewFrequencies(s)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	names, found := newAtoms(s), false
	routines, number := names.split(name)
	digits, numbered := strings.CutPrefix(number, "#")
	path, err := strconv.ParseUint(digits, 10, 64)
	for i := range s.Symbols {
		if p := &s.Symbols[i]; numbered && err == nil && !p.IsMark && routines[p.Routine] && p.Path == path {
			found = true
			writePath(out, s, names.labels.of(uint32(i)), frequencies.Symbol(uint32(i)))
		}
	}
	if !found {
		return fmt.Errorf("look for path %s: %s: name one as the table of hot subpaths does, ROUTINE#NUMBER", printable(name), names.missing(routines, number))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write path %s: %w", printable(name), err)
	}
	return nil
}

// missing says why no path that ran has the number.
func (a *atoms) missing(routines map[int]bool, number string) string {
	if !strings.HasPrefix(number, "#") {
		return "it has no number"
	}
	n, err := strconv.ParseUint(number[1:], 10, 64)
	switch {
	case err != nil:
		return "its number is none"
	case len(routines) == 0:
		return "there is no such routine"
	}
	if paths := a.paths(routines); n >= paths {
		return "the routine has " + plural(paths, "path")
	}
	return "it did not run"
}

// isShort reports whether short is the text, or stands for it, as what shortenMiddle makes of it
// does: each "..." for any part of it, which may be empty.
func isShort(short, text string) bool {
	if short == text {
		return true
	}
	parts := strings.Split(short, ellipsis)
	last := len(parts) - 1
	text, ok := strings.CutPrefix(text, parts[0])
	for i := 1; ok && i < last; i++ {
		_, text, ok = strings.Cut(text, parts[i])
	}
	return ok && last > 0 && strings.HasSuffix(text, parts[last])
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

// source is the place of a span in the source, "" if it is not known, and behind it, for what is
// inlined, the place of each call up to the one in the routine that has the code.
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

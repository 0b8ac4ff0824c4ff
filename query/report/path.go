package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
	"wpptrace/query/names"
)

// WritePath writes what the paths of this name are, ROUTINE#N as in the table of hot subpaths: how
// often each ran, and a line for each block, or each part of one that is inlined from elsewhere,
// with its addresses, instructions, source lines and inlined calls. Of a name, "..." stands for
// what the table has left out, and @ADDRESS may be missing. It fails when the snapshot has no such
// path. The routine may be in quotes.
func WritePath(w io.Writer, s *wpp.Snapshot, name string) error {
	frequencies, err := query.NewFrequencies(s)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	labels, found := NewLabels(s), false
	routines, number := labels.names.Split(name)
	digits, numbered := strings.CutPrefix(number, "#")
	path, err := strconv.ParseUint(digits, 10, 64)
	for i := range s.Symbols {
		if p := &s.Symbols[i]; numbered && err == nil && !p.IsMark && routines[p.Routine] &&
			p.Path == path {
			found = true
			writePath(out, s, labels.Of(uint32(i)), frequencies.Symbol(uint32(i)))
		}
	}
	if !found {
		return fmt.Errorf("look for path %s: %w", names.Printable(name),
			labels.names.Missing(name, routines, number))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write path %s: %w", names.Printable(name), err)
	}
	return nil
}

func writePath(out *bufio.Writer, s *wpp.Snapshot, l *Label, count uint64) {
	fmt.Fprintf(out, "%s#%d in %s, from %s to %s: %s, ran %s\n", l.Routine, l.Path,
		names.Printable(l.Image), l.Start, l.End,
		text.Count(s.SymbolCost(l.Symbol), "instruction"), text.Count(count, "time"))
	row := func(addresses, instructions, source string) {
		line := fmt.Sprintf("  %-17s  %5s  %s", addresses, instructions, source)
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("ADDRESSES", "INSNS", "SOURCE")
	for p := range s.Pieces(l.Symbol) {
		for span := range p.Spans() {
			sources := source(s, l.Routine, span)
			row(addresses(wpp.Piece{Block: p.Block, From: span.From, To: span.To}),
				strconv.Itoa(span.To-span.From), sources[0])
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
		return before + names.Printable(s.Files[file]) + ":" + lines(first, last) + " "
	}
	var out []string
	line := place("", span.File, span.Line, span.Last)
	for c := range s.Stack(span.Call) {
		out = append(out, line+"in "+cmp.Or(names.Printable(c.Name), "?"))
		line = "inlined " + place("at ", c.File, c.Line, c.Line)
	}
	if span.Call != 0 {
		line += "in " + routine
	}
	return append(out, line)
}

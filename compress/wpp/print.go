package wpp

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// WriteASCII writes the grammar as text and returns the number of bytes: a line for each rule in
// the order of their numbers, as in "S -> R1 R1 7" and "R1 -> 12 7"; a number is a terminal. That
// number of bytes is the size of a WPP in table 1 of Larus 1999. It costs a pass over the grammar.
// A segment that cannot be read any more gives an error.
func (g *Grammar) WriteASCII(w io.Writer) (size int64, err error) {
	defer Recover(&err)
	b := bufio.NewWriter(w)
	var line []byte
	for r := range g.Rules() {
		body := g.Body(r)
		line = append(appendRule(line[:0], r), " ->"...)
		for _, v := range body {
			line = append(line, ' ')
			if IsRule(v) {
				line = appendRule(line, RuleOf(v))
			} else {
				line = strconv.AppendUint(line, uint64(v), 10)
			}
		}
		line = append(line, '\n')
		n, err := b.Write(line)
		size += int64(n)
		if err != nil {
			return size, err
		}
	}
	return size, b.Flush()
}

func appendRule(b []byte, r int) []byte {
	if r == 0 {
		return append(b, 'S')
	}
	return strconv.AppendUint(append(b, 'R'), uint64(r), 10)
}

// WriteDot writes the grammar as a graph for Graphviz, as in figures 4 and 5 of Larus 1999: rules
// with their frequencies are interior nodes, terminals are leaves, labelled by label, with theirs,
// and the edges out of a node stand in the order of its body. A segment that cannot be read any
// more gives an error.
func (g *Grammar) WriteDot(w io.Writer, label func(terminal uint32) string) (err error) {
	defer Recover(&err)
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "digraph wpp {\n\tordering=out\n")
	frequency := map[uint32]uint64{}
	var terminals []uint32
	for r := range g.Rules() {
		body, uses := g.Body(r), g.Uses(r)
		fmt.Fprintf(b, "\t%s [label=\"%s\\n%d\"]\n", appendRule(nil, r), appendRule(nil, r), uses)
		for _, v := range body {
			if IsRule(v) {
				fmt.Fprintf(b, "\t%s -> %s\n", appendRule(nil, r), appendRule(nil, RuleOf(v)))
				continue
			}
			fmt.Fprintf(b, "\t%s -> t%d\n", appendRule(nil, r), v)
			if _, seen := frequency[v]; !seen {
				terminals = append(terminals, v)
			}
			frequency[v] = addSaturating(frequency[v], uses)
		}
	}
	for _, t := range terminals {
		fmt.Fprintf(b, "\tt%d [shape=box label=%s]\n", t,
			dotQuote(fmt.Sprintf("%s\n%d", label(t), frequency[t])))
	}
	fmt.Fprint(b, "}\n")
	return b.Flush()
}

// dotQuote quotes a string for Graphviz, which knows no escapes but these.
func dotQuote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case strconv.IsPrint(r):
			b = append(b, string(r)...)
		default:
			b = append(b, '?')
		}
	}
	return string(append(b, '"'))
}

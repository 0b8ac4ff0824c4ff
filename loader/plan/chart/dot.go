package chart

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteDot writes the chart as a graph for Graphviz: blocks with a probe are filled, and what runs
// behind a block without one is dashed. printable is as of WriteText.
func (c *Chart) WriteDot(w io.Writer, printable func(name string) string) error {
	out := bufio.NewWriter(w)
	quote := func(lines ...string) string { return strconv.Quote(strings.Join(lines, "\n")) }
	fmt.Fprintf(out, "digraph %s {\n", quote(printable(c.Name)))
	fmt.Fprintf(out, "\tnode [shape=box, fontname=monospace, style=filled, fillcolor=white];\n")
	if c.LeftOut != nil {
		fmt.Fprintf(out, "\tentry [label=%s];\n", quote("left out: "+*c.LeftOut))
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		label := []string{fmt.Sprintf("%d  %x-%x%s", b.Number, b.From, b.To,
			in(b.Source, printable)), b.Ending}
		attributes, style := "", "dashed"
		if b.Callee != nil {
			label = append(label, b.End+" of "+printable(*b.Callee))
		}
		if p := b.Probe; p != nil {
			attributes, style = ", fillcolor=lightgrey", "solid"
			label = append(label, fmt.Sprintf("probe at %x, %s", p.Addr, p.Class))
			if p.Captured != nil {
				label = append(label, "records "+*p.Captured)
			}
		}
		fmt.Fprintf(out, "\t%d [label=%s%s];\n", b.Number, quote(label...), attributes)
		for _, n := range b.Next {
			way := ""
			if b.Taken != nil && len(b.Next) == 2 {
				way = ", label=" + quote(outcome(n == *b.Taken))
			}
			fmt.Fprintf(out, "\t%d -> %q [style=%s%s];\n", b.Number, nodeName(n), style, way)
		}
		if strings.Contains(b.Entered, "entry") {
			fmt.Fprintf(out, "\tentry -> %d;\n", b.Number)
		}
	}
	fmt.Fprintf(out, "\tentry, end [shape=plaintext];\n}\n")
	return flush(out)
}

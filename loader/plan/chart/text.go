package chart

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"wpptrace/internal/text"
)

// most of the routes that a block is on are named in its line.
const mostKnown = 8

// WriteText writes the chart as text. printable makes of a name one that a terminal takes as it is:
// names come from the file.
func (c *Chart) WriteText(w io.Writer, printable func(name string) string) error {
	out := bufio.NewWriter(w)
	probes := 0
	for i := range c.Blocks {
		if c.Blocks[i].Probe != nil {
			probes++
		}
	}
	fmt.Fprintf(out, "%-10s %s, entry %x%s\n", "routine", printable(c.Name), c.Entry,
		in(c.Source, printable))
	if c.LeftOut != nil {
		fmt.Fprintf(out, "%-10s %s\n", "left out", *c.LeftOut)
		return flush(out)
	}
	fmt.Fprintf(out, "%-10s %s, %s, %s\n", "plan", text.Count(len(c.Blocks), "block"),
		text.Count(probes, "probe"), text.Count(len(c.Routes), "probe-free route"))
	fmt.Fprintf(out, "%-10s %s\n", "entered by", c.callers())
	fmt.Fprintf(out, "%-10s %s\n\nblocks\n", "events", c.least())
	for i := range c.Blocks {
		c.Blocks[i].write(out, printable)
	}
	fmt.Fprintf(out, "\nroutes: what runs between two events. The first event, with what it "+
		"records, and the next\n")
	fmt.Fprintf(out, "one say together which route it was\n")
	for i := range c.Routes {
		c.Routes[i].write(out, c.Blocks)
	}
	if c.Unlisted {
		fmt.Fprintf(out, "           and more: only %d are listed\n", MostRoutes)
	}
	return flush(out)
}

func flush(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the plan of a routine: %w", err)
	}
	return nil
}

func (c *Chart) callers() string {
	if c.External {
		return "external code, or traced routines"
	}
	return "traced routines alone"
}

func (c *Chart) least() string {
	if c.ProbeFree {
		return "none in some activations: their callers imply what they did"
	}
	return "at least one in each activation"
}

func in(at *string, printable func(string) string) string {
	if at == nil {
		return ""
	}
	return ", " + printable(*at)
}

func (b *Block) write(out io.Writer, printable func(string) string) {
	fmt.Fprintf(out, "  %3d  %x-%x%s: %s\n", b.Number, b.From, b.To, in(b.Source, printable),
		strings.Join(b.describe(printable), "; "))
	if b.Loop != nil {
		fmt.Fprintf(out, "       a loop without a probe; %s\n", *b.Loop)
	}
	if b.Probe == nil {
		fmt.Fprintf(out, "       no probe: known by %s\n", b.known())
		return
	}
	p := b.Probe
	fmt.Fprintf(out, "       probe at %x (%s), %s: each event records\n", p.Addr, p.Instruction,
		p.Class)
	fmt.Fprintf(out, "         the activation: its frame (CFA) is at %s\n", p.Activation)
	if p.First {
		fmt.Fprintf(out, "         its caller, if the event is the first of the activation\n")
	}
	if p.Outcome {
		fmt.Fprintf(out, "         whether the jump is taken\n")
	}
	if p.Captured != nil {
		fmt.Fprintf(out, "         %s: decides %s\n", *p.Captured, *p.Decides)
	}
}

// describe says how a block is come to, and what it ends with.
func (b *Block) describe(printable func(string) string) (list []string) {
	if b.Entered != "" {
		list = append(list, b.Entered)
	}
	ending := fmt.Sprintf("%s (%s)", b.End, b.Ending)
	if b.Callee != nil {
		ending += " of " + printable(*b.Callee)
	}
	list = append(list, ending)
	switch {
	case b.Taken != nil && len(b.Next) == 2:
		list = append(list, fmt.Sprintf("taken to %s, else %s", nodeName(b.Next[0]),
			nodeName(b.Next[1])))
	case len(b.Next) > 0:
		list = append(list, "then "+join(b.Next, ", "))
	}
	return list
}

func (b *Block) known() string {
	switch n := len(b.KnownBy); {
	case n == 0:
		return "nothing: no route leads to it"
	case n > mostKnown:
		return fmt.Sprintf("%s and %d more", numbers("route", b.KnownBy[:mostKnown]), n-mostKnown)
	}
	return numbers("route", b.KnownBy)
}

func (r *Route) write(out io.Writer, blocks []Block) {
	from := nodeName(r.From)
	if r.Outcome != nil {
		from += " " + outcome(*r.Outcome)
	}
	if r.Value != nil {
		from += ", " + *r.Value
	}
	way := make([]string, 0, len(r.Blocks)+1)
	for _, b := range r.Blocks {
		name := nodeName(b)
		if blocks[b].Loop != nil {
			name += " (rounds)"
		}
		way = append(way, name)
	}
	to := nodeName(r.To)
	if r.To >= 0 {
		to = "event of " + to
	}
	line := fmt.Sprintf("  %3d  %s: ", r.Number, from)
	for i, node := range append(way, to) {
		if i > 0 {
			node = " -> " + node
		}
		if len(line)+len(node) > columns {
			fmt.Fprintln(out, line)
			line = "      "
		}
		line += node
	}
	fmt.Fprintln(out, line)
}

// columns are what a line of a route has at most.
const columns = 100

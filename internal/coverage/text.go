package coverage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"wpptrace/internal/text"
	"wpptrace/query/names"
)

// mostCallers is how many callers a line names.
const mostCallers = 8

// Text is the event in one line.
func (n *New) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s thread %d", n.when.Format("15:04:05.000"), n.Thread)
	if n.ThreadName != nil {
		fmt.Fprintf(&b, " (%s)", *n.ThreadName)
	}
	if n.To == nil {
		fmt.Fprintf(&b, ": %s", n.Frame.text())
	} else {
		fmt.Fprintf(&b, ": %s (%s -> %s)", n.Routine, n.place(), n.To.place())
	}
	for i, c := range n.Callers {
		if i == mostCallers {
			b.WriteString(" < ...")
			break
		}
		fmt.Fprintf(&b, " < %s", c.text())
	}
	if n.Suppressed > 0 {
		fmt.Fprintf(&b, "; before it %s not printed", text.Count(n.Suppressed, "more event"))
	}
	return names.Printable(b.String())
}

// text is the routine with its line, or its address.
func (f *Frame) text() string {
	return fmt.Sprintf("%s (%s)", f.Routine, f.place())
}

// place is the line, or the address.
func (f *Frame) place() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s+%s", f.Image, f.Address)
	}
	return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
}

// Text says what the result is, in one line.
func (r Residue) Text() string {
	line := fmt.Sprintf("%s ran that no baseline has run, of %d that were watched",
		text.Count(r.New, "block"), r.Watched)
	if r.NotReported > 0 {
		line += fmt.Sprintf("; not printed: %d, for more than --most came in a second",
			r.NotReported)
	}
	if r.NotWatched > 0 {
		line += fmt.Sprintf("; %s more were not watched, for the baselines do not say whether "+
			"they have run them", text.Count(r.NotWatched, "block"))
	}
	if r.Edges {
		line += r.edgesText()
	}
	if r.Paths {
		line += fmt.Sprintf("; %s ran paths that no baseline has, %s at least",
			text.Count(r.NewPaths, "routine"), text.Count(r.NewExecutions, "time"))
	}
	return line
}

// edgesText is the part on edges.
func (r *Residue) edgesText() string {
	line := fmt.Sprintf("; edges: %d that no baseline has taken, of %d that were watched",
		r.NewEdges, r.EdgesWatched)
	if r.EdgesNotWatched > 0 {
		line += fmt.Sprintf("; %s more were not watched, for the baselines do not say whether "+
			"they have taken them", text.Count(r.EdgesNotWatched, "edge"))
	}
	if r.JumpsGivenUp > 0 {
		line += fmt.Sprintf("; those of %s not until the end, for hits took too much",
			text.Count(r.JumpsGivenUp, "jump"))
	}
	return line
}

// Text is the event in one line.
func (n *NewPaths) Text() string {
	return names.Printable(fmt.Sprintf("%s read: %s: paths that no baseline has ran %s",
		n.when.Format("15:04:05.000"), n.Frame.text(), text.Count(n.Executions, "time")))
}

// A Writer writes events. It belongs to one goroutine.
type Writer struct {
	to     io.Writer
	asJSON bool
	last   *New // that has a line
	more   int  // blocks of the same activation since
	edges  int  // edges of it since
}

// NewWriter returns one that writes a line for each event, as JSON for each, else for the first of
// several of one activation.
func NewWriter(to io.Writer, asJSON bool) *Writer { return &Writer{to: to, asJSON: asJSON} }

// Write writes an event.
func (w *Writer) Write(e Event) error {
	if w.asJSON {
		return json.NewEncoder(w.to).Encode(e)
	}
	n, isBlock := e.(*New)
	if isBlock && w.last != nil && n.follows(w.last) {
		if n.To == nil {
			w.more++
		} else {
			w.edges++
		}
		return nil
	}
	err := w.Flush()
	w.last = n
	_, writeErr := fmt.Fprintln(w.to, e.Text())
	return errors.Join(err, writeErr)
}

// Flush writes how many events of the last activation have no line.
func (w *Writer) Flush() error {
	var more []string
	if w.more > 0 {
		more = append(more, text.Count(w.more, "more block"))
	}
	if w.edges > 0 {
		more = append(more, text.Count(w.edges, "more edge"))
	}
	if more == nil {
		return nil
	}
	_, err := fmt.Fprintf(w.to, "    and %s of %s\n", strings.Join(more, " and "),
		names.Printable(w.last.Routine))
	w.last, w.more, w.edges = nil, 0, 0
	return err
}

// follows reports whether an event is of the activation of one before, as far as can be seen.
func (n *New) follows(before *New) bool {
	const soon = time.Second
	return n.Routine == before.Routine && n.Thread == before.Thread && n.Suppressed == 0 &&
		n.when.Sub(before.when) < soon && slices.Equal(n.Callers, before.Callers)
}

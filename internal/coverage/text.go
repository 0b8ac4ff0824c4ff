package coverage

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

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
	fmt.Fprintf(&b, ": %s", n.Frame.text())
	for i, c := range n.Callers {
		if i == mostCallers {
			b.WriteString(" < ...")
			break
		}
		fmt.Fprintf(&b, " < %s", c.text())
	}
	if n.Suppressed > 0 {
		fmt.Fprintf(&b, "; before it %s not printed", text.Count(n.Suppressed, "more block"))
	}
	return names.Printable(b.String())
}

// text is the routine with its line, or its address.
func (f *Frame) text() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s (%s+%s)", f.Routine, f.Image, f.Address)
	}
	return fmt.Sprintf("%s (%s:%d)", f.Routine, path.Base(f.File), f.Line)
}

// Text says what the result is, in one line.
func (r Residue) Text() string {
	line := fmt.Sprintf("%s ran that no baseline has run, of %d that were watched",
		text.Count(r.New, "block"), r.Watched)
	if r.SuppressedBy > 0 {
		line += fmt.Sprintf("; %d of them were not printed, for too many came at once",
			r.SuppressedBy)
	}
	if r.NotWatched > 0 {
		line += fmt.Sprintf("; %s more were not watched, for the baselines do not say whether "+
			"they have run them", text.Count(r.NotWatched, "block"))
	}
	return line
}

// WriteNew writes an event as a line, or as a JSON object on a line.
func WriteNew(w io.Writer, n *New, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(n)
	}
	_, err := fmt.Fprintln(w, n.Text())
	return err
}

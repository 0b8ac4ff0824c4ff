package planreport

import (
	"io"

	"wpptrace/internal/traced"
	"wpptrace/loader/plan/chart"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Chart is what the plan makes of one routine.
type Chart struct {
	SchemaVersion int `json:"schema_version"`
	*chart.Chart
}

// ChartOf charts the one routine of a program that has a name: see traced.Program.Routine, whose
// error it returns where there is none, or several are.
func ChartOf(p *traced.Program, name string) (*Chart, error) {
	r, err := p.Routine(name)
	if err != nil {
		return nil, err
	}
	lines, _ := p.Image.Lines() // a chart without lines is one, too
	return &Chart{report.SchemaVersion, chart.Of(p.Plan, r, lines)}, nil
}

// WriteText writes blocks, probes and routes as lines of text.
func (c *Chart) WriteText(w io.Writer) error { return c.Chart.WriteText(w, names.Printable) }

// WriteDot writes the blocks as a graph for Graphviz.
func (c *Chart) WriteDot(w io.Writer) error { return c.Chart.WriteDot(w, names.Printable) }

// WriteJSON writes one JSON object.
func (c *Chart) WriteJSON(w io.Writer) error {
	return report.WriteJSON(w, c, "the plan of a routine")
}

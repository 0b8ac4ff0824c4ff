package main

import (
	"io"

	"wpptrace/internal/record"
	"wpptrace/loader/plan/chart"
	routinenames "wpptrace/query/names"
	"wpptrace/query/report"
)

// A routineChart is what the plan makes of one routine.
type routineChart struct {
	SchemaVersion int `json:"schema_version"`
	*chart.Chart
}

// chartOf charts the one routine of a plan that has a name.
func chartOf(p *record.Program, name string) (*chart.Chart, error) {
	r, err := p.Routine(name)
	if err != nil {
		return nil, err
	}
	lines, _ := p.Image.Lines() // a chart without lines is one, too
	return chart.Of(p.Plan, r, lines), nil
}

// writeChart writes a chart as text, as JSON, or as a graph.
func (q *planQuery) writeChart(w io.Writer, c *chart.Chart) error {
	switch {
	case q.dot:
		return c.WriteDot(w, routinenames.Printable)
	case q.asJSON:
		return report.WriteJSON(w, routineChart{report.SchemaVersion, c}, "the plan of a routine")
	}
	return c.WriteText(w, routinenames.Printable)
}

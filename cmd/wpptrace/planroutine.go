package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"wpptrace/internal/record"
	"wpptrace/loader/plan"
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
	r, err := findRoutine(p.Plan, name)
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

// findRoutine returns the one routine with a name: as it is printed, as the symbol table has it, or
// the entry's address. Where there is none, or several are, the error names those that may be
// meant.
func findRoutine(p *plan.Plan, name string) (*plan.Routine, error) {
	const most = 10
	var found []*plan.Routine
	known := make([]string, len(p.Routines))
	for i, r := range p.Routines {
		if known[i] = r.Name; r.Name == name || r.Symbol == name {
			found = append(found, r)
		}
	}
	if addr, err := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64); err == nil && len(found) == 0 {
		if r := p.Containing(addr); r != nil && r.Addr == addr {
			return r, nil
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		near := routinenames.Similar(name, known, most)
		if len(near) == 0 {
			return nil, fmt.Errorf("no routine %s: wpptrace plan -v lists them", routinenames.Printable(name))
		}
		return nil, fmt.Errorf("no routine %s: did you mean %s?", routinenames.Printable(name), routinenames.Printable(strings.Join(near, " or ")))
	}
	var entries []string
	for _, r := range found[:min(len(found), most)] {
		entries = append(entries, fmt.Sprintf("0x%x", r.Addr))
	}
	return nil, fmt.Errorf("%d routines are called %s: name one by its entry: %s", len(found), routinenames.Printable(name), strings.Join(entries, ", "))
}

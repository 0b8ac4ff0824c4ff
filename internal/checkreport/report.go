package checkreport

import (
	"errors"
	"fmt"
	"io"

	"wpptrace/loader/requirement"
	"wpptrace/query/report"
)

// A Check is the outcome of a requirement that was checked.
type Check struct {
	Name    string `json:"name"`              // of the check
	OK      bool   `json:"ok"`                // false too where it is unknown
	Unknown bool   `json:"unknown,omitempty"` // it may be ok
	Found   string `json:"found"`             // what there is, or what is wrong
	Fix     string `json:"fix,omitempty"`     // what to do about it
}

func (c *Check) state() string {
	switch {
	case c.OK:
		return "ok"
	case c.Unknown:
		return "unknown"
	}
	return "missing"
}

// A Report is the outcome of all requirements, OK while there are none. Its JSON form grows, within
// a version, by new members only.
type Report struct {
	SchemaVersion int     `json:"schema_version"`
	OK            bool    `json:"ok"`     // all are
	Checks        []Check `json:"checks"` // in the order in which they are printed

	explain func(error) string
}

// New returns a report without checks. explain is what an error is printed as, with what a user
// can do about it.
func New(explain func(error) string) *Report {
	return &Report{SchemaVersion: report.SchemaVersion, OK: true, Checks: []Check{},
		explain: explain}
}

// Add checks requirements, and adds the outcome.
func (r *Report) Add(list ...requirement.Requirement) {
	for _, q := range list {
		found, err := q.Find()
		k := Check{Name: q.Name, OK: err == nil, Unknown: errors.Is(err, requirement.ErrUnknown),
			Found: found}
		if err != nil {
			k.Found, r.OK = r.explain(err), false
		}
		if !k.OK && !k.Unknown {
			k.Fix = q.Fix
		}
		r.Checks = append(r.Checks, k)
	}
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r, "checks") }

// WriteText writes a line for each check: its state, its name, what was found, and the fix.
func (r *Report) WriteText(w io.Writer) error {
	for _, c := range r.Checks {
		text := c.Found
		if c.Fix != "" {
			text += ": " + c.Fix
		}
		if _, err := fmt.Fprintf(w, "%-8s %-16s %s\n", c.state(), c.Name, text); err != nil {
			return fmt.Errorf("write checks: %w", err)
		}
	}
	return nil
}

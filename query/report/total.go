package report

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query"
)

// A TotalJSON says how much there was of something in the whole run, of which windows were
// recorded.
type TotalJSON struct {
	Estimate float64 `json:"estimate"` // the likeliest
	Least    float64 `json:"least"`    // of the interval that it is in, 95 times of 100
	Most     float64 `json:"most"`     // of the same
}

// totalJSON is nil for what is not known.
func totalJSON(t *query.Total) *TotalJSON {
	if t == nil {
		return nil
	}
	return &TotalJSON{t.Value, t.Least, t.Most}
}

// totalText is the interval that a total is in.
func totalText(t *query.Total) string { return totalJSON(t).Text() }

// Text is the interval; -: it is not known.
func (t *TotalJSON) Text() string {
	if t == nil {
		return "-"
	}
	least, most := text.Short(t.Least), text.Short(t.Most)
	if least == most {
		return most
	}
	return least + "-" + most
}

// inAll is the cost of all that ran in the whole run, "" of one all of which was recorded.
func inAll(s *wpp.Snapshot, t *query.Total, m query.Metric) string {
	switch {
	case !s.Figures.IsSampled():
		return ""
	case t == nil:
		return "; in all: not known"
	case m == query.Executions:
		return fmt.Sprintf("; in all: %s", totalText(t))
	}
	return fmt.Sprintf("; in all: %s %s", totalText(t), m)
}

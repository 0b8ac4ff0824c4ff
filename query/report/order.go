package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/rules"
)

// WriteOrder writes an order: two lines for each of the two directions.
func WriteOrder(w io.Writer, s *wpp.Snapshot, o *rules.Order) error {
	out := bufio.NewWriter(w)
	labels := NewLabels(s)
	direction := func(p, q string, ever, always bool, after, ran uint64, first rules.Violation) {
		how := "never"
		switch {
		case always:
			how = "always"
		case ever:
			how = "sometimes"
		}
		behind := fmt.Sprintf(": %s; %d of %s had one before", how, after, text.Count(ran, "time"))
		switch {
		case len(o.Unknown) > 0 && !ever:
			behind = ": unknown; not both were observed"
		case ran == 0:
			behind = ": never; the second did not run"
		}
		half := (TableColumns - len(" before ") - len(behind)) / 2
		fmt.Fprintf(out, "%s before %s%s\n", Fit(p, half), Fit(q, half), behind)
		if ever {
			writeParagraph(out, fmt.Sprintf("  first in thread %d, position %d: ", first.TID, first.Position), labels.stretch(first.Occurrence))
		}
	}
	direction(o.P, o.Q, o.EverP, o.AlwaysP, o.QAfterP, o.QRan, o.FirstAfter[0])
	direction(o.Q, o.P, o.EverQ, o.AlwaysQ, o.PAfterQ, o.PRan, o.FirstAfter[1])
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write order: %w", err)
	}
	return nil
}

// OrderJSON is what order --json prints.
type OrderJSON struct {
	SchemaVersion int `json:"schema_version"`
	*rules.Order
	FirstP  *OrderWitness  `json:"first_p_to_q"`           // the first Q behind a P; null: there is none
	FirstQ  *OrderWitness  `json:"first_q_to_p"`           // the first P behind a Q; null: there is none
	Inlined []rules.Copies `json:"also_inlined,omitempty"` // whose calls there are not counted
	Legend
}

// An OrderWitness is where one path ran behind the other first.
type OrderWitness struct {
	rules.Violation
	Why string `json:"why,omitempty"` // hides that of the violation
}

// WriteOrderJSON writes an order as one JSON object.
func WriteOrderJSON(w io.Writer, s *wpp.Snapshot, o *rules.Order) error {
	var firsts [2]*OrderWitness
	for i, ever := range []bool{o.EverP, o.EverQ} {
		if ever {
			firsts[i] = &OrderWitness{Violation: o.FirstAfter[i]}
		}
	}
	report := OrderJSON{SchemaVersion, o, firsts[0], firsts[1], rules.Inlined(s, o.P, o.Q), legendOf(s, []rules.Occurrence{o.FirstAfter[0].Occurrence, o.FirstAfter[1].Occurrence})}
	return WriteJSON(w, report, "order")
}

package report

import (
	"bufio"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
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
		case o.Inlined && !ever:
			behind = ": unknown; inlined calls are not counted"
		case len(o.Unknown) > 0 && !ever:
			behind = ": unknown; not both were traced"
		case ran == 0:
			behind = ": never; the second did not run"
		}
		half := (TableColumns - len(" before ") - len(behind)) / 2
		fmt.Fprintf(out, "%s before %s%s\n", names.Fit(p, half), names.Fit(q, half), behind)
		if ever {
			writeParagraph(out,
				fmt.Sprintf("  first in thread %d, position %d: ", first.TID, first.Position),
				labels.stretch(first.Occurrence))
		}
	}
	direction(o.P, o.Q, o.EverP, o.AlwaysP, o.QAfterP, o.QRan, o.FirstAfter[0])
	direction(o.Q, o.P, o.EverQ, o.AlwaysQ, o.PAfterQ, o.PRan, o.FirstAfter[1])
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write order: %w", err)
	}
	return nil
}

// OrderJSON is what order --json prints: which of two paths, or routines, P and Q, ran before the
// other within its thread.
type OrderJSON struct {
	SchemaVersion int    `json:"schema_version"`
	P             string `json:"p"`     // as it was asked for
	Q             string `json:"q"`     // as it was asked for
	PRan          uint64 `json:"p_ran"` // executions of P
	QRan          uint64 `json:"q_ran"` // executions of Q
	// executions of Q that had a P before them
	QAfterP uint64 `json:"q_after_p"`
	// executions of P that had a Q before them
	PAfterQ uint64 `json:"p_after_q"`
	EverP   bool   `json:"ever_p_first"`   // a P ran before a Q
	AlwaysP bool   `json:"always_p_first"` // Q ran, and each Q had a P before it
	EverQ   bool   `json:"ever_q_first"`   // a Q ran before a P
	AlwaysQ bool   `json:"always_q_first"` // P ran, and each P had a Q before it
	// names with routines that were not traced, or that are inlined as well: what is said of the
	// others alone is true, and always of none that such calls may come before
	Unknown []string `json:"unknown,omitempty"`
	// the first Q behind a P, from that P on; null: there is none
	FirstP *OrderWitness `json:"first_p_to_q"`
	// the first P behind a Q, from that Q on; null: there is none
	FirstQ *OrderWitness `json:"first_q_to_p"`
	Inlined
	Legend
}

// OrderWitness is where one path ran behind the other first.
type OrderWitness struct {
	OccurrenceJSON
	Before []uint32 `json:"before"` // up to three symbols before it
	After  []uint32 `json:"after"`  // up to three symbols behind it
}

// WriteOrderJSON writes an order as one JSON object.
func WriteOrderJSON(w io.Writer, s *wpp.Snapshot, o *rules.Order) error {
	report := OrderJSON{
		SchemaVersion: SchemaVersion, P: o.P, Q: o.Q, PRan: o.PRan, QRan: o.QRan,
		QAfterP: o.QAfterP, PAfterQ: o.PAfterQ,
		EverP: o.EverP, AlwaysP: o.AlwaysP, EverQ: o.EverQ, AlwaysQ: o.AlwaysQ, Unknown: o.Unknown,
		Inlined: inlinedOf(s, o.P, o.Q),
	}
	var all []uint32
	witness := func(ever bool, v *rules.Violation) *OrderWitness {
		if !ever {
			return nil
		}
		all = append(all, v.Symbols...)
		return &OrderWitness{occurrenceJSON(v.Occurrence), v.Before, v.After}
	}
	report.FirstP, report.FirstQ = witness(o.EverP, &o.FirstAfter[0]), witness(o.EverQ,
		&o.FirstAfter[1])
	report.Legend = legendOf(s, all)
	return WriteJSON(w, report, "order")
}

package query

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"wpptrace/compress/wpp"
)

// An Order says which of two paths, or routines, runs before the other within its thread.
type Order struct {
	P string `json:"p"`
	Q string `json:"q"`

	PRan       uint64      `json:"p_ran"`        // executions of P
	QRan       uint64      `json:"q_ran"`        // executions of Q
	QAfterP    uint64      `json:"q_after_p"`    // of these, that had a P before them
	PAfterQ    uint64      `json:"p_after_q"`    // executions of P that had a Q before them
	EverP      bool        `json:"ever_p_first"` // a P ran before a Q
	AlwaysP    bool        `json:"always_p_first"`
	EverQ      bool        `json:"ever_q_first"`
	AlwaysQ    bool        `json:"always_q_first"`
	Unknown    []string    `json:"unknown,omitempty"` // names with routines that were not observed: what is said of the others alone is true, and always of none
	FirstAfter []Violation `json:"-"`                 // the first Q behind a P and what ran from that P on; then the first P behind a Q; empty where there is none
}

// PathOrder tells whether P ever, or always, runs before Q, and Q before P, in the threads with
// these ids, or in all (Larus 1999, section 3.3: P runs before Q if an inorder walk from a common
// ancestor meets P first). P always runs before Q if Q ran, and each Q had a P before it. Names are
// those of a FindQuery. It takes time and memory linear in the grammars.
func PathOrder(s *wpp.Snapshot, p, q string, tids ...int) (*Order, error) {
	threads, err := selectThreads(s, tids)
	if err != nil {
		return nil, err
	}
	names := newAtoms(s)
	o := &Order{P: p, Q: q}
	numbers := [2]int{}
	for i, name := range []string{p, q} {
		if numbers[i], err = names.add(name); err != nil {
			return nil, fmt.Errorf("order of %s and %s: %w", printable(p), printable(q), err)
		}
	}
	o.Unknown = names.unobserved()
	frequencies := newFrequencies(newForests(s, threads))
	for sym, mask := range names.mask {
		n := frequencies.Symbol(uint32(sym))
		o.PRan = addSaturating(o.PRan, n*(mask>>numbers[0]&1))
		o.QRan = addSaturating(o.QRan, n*(mask>>numbers[1]&1))
	}
	qAfterP := &rule{kind: neverOf, a: numbers[1], b: numbers[0], c: noAtom}
	pAfterQ := &rule{kind: neverOf, a: numbers[0], b: numbers[1], c: noAtom}
	for _, part := range []struct {
		rule  *rule
		count *uint64
	}{{qAfterP, &o.QAfterP}, {pAfterQ, &o.PAfterQ}} {
		first, err := part.rule.firstIn(names, threads, part.count)
		if err != nil {
			return nil, err
		}
		o.FirstAfter = append(o.FirstAfter, first)
	}
	o.EverP, o.AlwaysP = o.QAfterP > 0, o.QRan > 0 && o.QAfterP == o.QRan
	o.EverQ, o.AlwaysQ = o.PAfterQ > 0, o.PRan > 0 && o.PAfterQ == o.PRan
	for _, part := range []struct {
		always *bool
		ran    uint64
		p, q   int
	}{{&o.AlwaysP, o.QRan, numbers[0], numbers[1]}, {&o.AlwaysQ, o.PRan, numbers[1], numbers[0]}} {
		if *part.always && part.ran == math.MaxUint64 { // there may be more of both: their numbers tell nothing
			none := uint64(0)
			if _, err := (&rule{kind: before, a: part.p, b: part.q, c: noAtom}).firstIn(names, threads, &none); err != nil {
				return nil, err
			}
			*part.always = none == 0
		}
	}
	if len(o.Unknown) > 0 {
		o.AlwaysP, o.AlwaysQ = false, false
	}
	return o, nil
}

// firstIn adds up the violations of a rule in threads, and returns the first.
func (r *rule) firstIn(a *atoms, threads []*wpp.Thread, count *uint64) (first Violation, err error) {
	check, err := r.checker(a)
	if err != nil {
		return first, err
	}
	for _, t := range threads {
		v, err := check(t, false)
		if err != nil {
			return first, err
		}
		if *count == 0 && v.violations > 0 {
			first = v.first
		}
		*count = addSaturating(*count, v.violations)
	}
	return first, nil
}

// NearestCommonAncestors returns the rules that derive all of some symbols, terminals of the
// grammar, and use no rule that does (Larus 1999, section 3.3), each before those that it uses.
// There may be several: a node of a DAG has many parents. No symbols have none. It takes time and
// memory linear in the grammar, times the 64th part of the symbols.
func NearestCommonAncestors(g *wpp.Grammar, symbols ...uint32) []int {
	number := make(map[uint32]int)
	for _, sym := range symbols {
		if _, ok := number[sym]; !ok {
			number[sym] = len(number)
		}
	}
	order := g.Order() // of the rules that there are, however many a file declares
	hasAll := make([]bool, len(order))
	isNearest := make([]bool, len(order))
	for from := 0; from < len(number); from += 64 {
		all := ^uint64(0) >> max(0, 64-(len(number)-from))
		for r, has := range derives(g, order, number, from) {
			hasAll[r] = has&all == all && (from == 0 || hasAll[r])
		}
	}
	var nearest []int
	for _, r := range order {
		isNearest[r] = hasAll[r]
		for _, sym := range g.Body(r) {
			isNearest[r] = isNearest[r] && !(wpp.IsRule(sym) && hasAll[wpp.RuleOf(sym)])
		}
		if isNearest[r] {
			nearest = append(nearest, r)
		}
	}
	return nearest
}

// derives tells for each rule which of the 64 symbols numbered from one on it derives, a bit each.
func derives(g *wpp.Grammar, order []int, number map[uint32]int, from int) []uint64 {
	has := make([]uint64, len(order))
	for _, r := range slices.Backward(order) {
		for _, sym := range g.Body(r) {
			if wpp.IsRule(sym) {
				has[r] |= has[wpp.RuleOf(sym)]
			} else if n, ok := number[sym]; ok && n >= from && n < from+64 {
				has[r] |= 1 << (n - from)
			}
		}
	}
	return has
}

// WriteOrder writes an order: two lines for each of the two directions.
func WriteOrder(w io.Writer, s *wpp.Snapshot, o *Order) error {
	out := bufio.NewWriter(w)
	labels := newLabels(s)
	direction := func(p, q string, ever, always bool, after, ran uint64, first Violation) {
		how := "never"
		switch {
		case always:
			how = "always"
		case ever:
			how = "sometimes"
		}
		behind := fmt.Sprintf(": %s; %d of %s had one before", how, after, plural(ran, "time"))
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

// WriteOrderJSON writes an order as one JSON object.
func WriteOrderJSON(w io.Writer, s *wpp.Snapshot, o *Order) error {
	type first struct {
		Violation
		Why string `json:"why,omitempty"` // hides that of the violation
	}
	var firsts [2]*first
	for i, ever := range []bool{o.EverP, o.EverQ} {
		if ever {
			firsts[i] = &first{Violation: o.FirstAfter[i]}
		}
	}
	report := struct {
		SchemaVersion int `json:"schema_version"`
		*Order
		FirstP *first `json:"first_p_to_q"` // null: there is none
		FirstQ *first `json:"first_q_to_p"`
		legend
	}{SchemaVersion, o, firsts[0], firsts[1], legendOf(s, []Occurrence{o.FirstAfter[0].Occurrence, o.FirstAfter[1].Occurrence})}
	return WriteJSON(w, report, "order")
}

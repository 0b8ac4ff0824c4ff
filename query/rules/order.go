package rules

import (
	"fmt"
	"math"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/names"
)

// An Order says which of two paths, or routines, runs before the other within its thread.
type Order struct {
	P string
	Q string

	PRan    uint64 // executions of P
	QRan    uint64 // executions of Q
	QAfterP uint64 // of these, that had a P before them
	PAfterQ uint64 // executions of P that had a Q before them
	EverP   bool   // a P ran before a Q
	AlwaysP bool
	EverQ   bool
	AlwaysQ bool
	// names with routines that were not traced, or that are inlined as well: what is said of the
	// others alone is true, and always of none that such calls may come before
	Unknown []string
	Inlined bool // all that was traced of these, but calls that are inlined are not counted
	// the first Q behind a P and what ran from that P on; then the first P behind a Q; empty where
	// there is none
	FirstAfter []Violation
}

// PathOrder finds whether P ever, or always, runs before Q, and Q before P, in the threads with
// these ids, or in all (Larus 1999, section 3.3: P runs before Q if an inorder walk from a common
// ancestor meets P first). P always runs before Q if Q ran, and each Q had a P before it. Names are
// those of a FindQuery. It takes time and memory linear in the grammars.
func PathOrder(s *wpp.Snapshot, p, q string, tids ...int) (o *Order, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, tids)
	if err != nil {
		return nil, err
	}
	a := newPathNames(s)
	o = &Order{P: p, Q: q}
	numbers := [2]int{}
	for i, name := range []string{p, q} {
		if numbers[i], err = a.add(name); err != nil {
			return nil, fmt.Errorf("order of %s and %s: %w", names.Printable(p), names.Printable(q),
				err)
		}
	}
	o.Unknown = a.untraced()
	frequencies, err := query.NewFrequencies(s, tids...)
	if err != nil {
		return nil, err
	}
	for sym, mask := range a.mask {
		n := frequencies.Symbol(uint32(sym))
		o.PRan = saturating.Add(o.PRan, n*(mask>>numbers[0]&1))
		o.QRan = saturating.Add(o.QRan, n*(mask>>numbers[1]&1))
	}
	qAfterP := &rule{kind: neverOf, a: numbers[1], b: numbers[0], c: noAtom}
	pAfterQ := &rule{kind: neverOf, a: numbers[0], b: numbers[1], c: noAtom}
	for _, part := range []struct {
		rule  *rule
		count *uint64
	}{{qAfterP, &o.QAfterP}, {pAfterQ, &o.PAfterQ}} {
		first, err := part.rule.firstIn(a, threads, part.count)
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
		if *part.always && part.ran == math.MaxUint64 {
			// there may be more of both: their numbers say nothing
			none := uint64(0)
			if _, err := (&rule{kind: before, a: part.p, b: part.q, c: noAtom}).firstIn(a, threads,
				&none); err != nil {
				return nil, err
			}
			*part.always = none == 0
		}
	}
	if len(o.Unknown) > 0 {
		o.AlwaysP, o.AlwaysQ = false, false
		return o, nil
	}
	if inlined := a.inlined(); inlined != 0 {
		o.Unknown, o.Inlined = a.namesOf(inlined), true
		// more of what comes first changes nothing
		o.AlwaysP = o.AlwaysP && inlined>>numbers[1]&1 == 0
		o.AlwaysQ = o.AlwaysQ && inlined>>numbers[0]&1 == 0
	}
	return o, nil
}

// firstIn adds up the violations of a rule in threads, and returns the first.
func (r *rule) firstIn(a *pathNames, threads []*wpp.Thread,
	count *uint64) (first Violation, err error) {
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
		*count = saturating.Add(*count, v.violations)
	}
	return first, nil
}

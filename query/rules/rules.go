package rules

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/internal/stream"
	"wpptrace/query/names"
)

// A Report says which rules the threads keep.
type Report struct {
	Rules []RuleReport
	Gaps  uint64 // places where events were lost: what is lost may keep a rule or break it
}

// A RuleReport says whether the threads keep a rule.
type RuleReport struct {
	Rule     string
	Kept     bool     // nothing breaks it, and nothing is open, or could not be decided
	NeverRan []string // its names of routines of which no path ran
	// how often it is not kept for want of a routine that never ran: no violations
	Unmet uint64
	// its names of routines that were not traced, or that are inlined as well where that may
	// change the verdict: nothing else is known of it
	Unknown []string
	Inlined bool // all that was traced of these, but calls that are inlined are not counted

	Violations uint64 // in all threads
	// what may have been kept before a record began, or in a gap, or may be yet where it ends of a
	// thread that ran on: no violations
	Open uint64
	// the first of each thread that breaks the rule or, if it does not, leaves it open
	Witnesses []Violation
	*Valued   // of a rule with values; else nil
}

// A Violation is where a thread breaks a rule first, or leaves it open.
type Violation struct {
	Why        string
	Occurrence          // the shortest stretch that breaks the rule where it is broken first
	Before     []uint32 // up to three symbols before it
	After      []uint32 // up to three symbols behind it
}

func violation(why string, o Occurrence, c *stream.Cursor) Violation {
	v := Violation{Why: why, Occurrence: o, Before: []uint32{}, After: []uint32{}}
	if o.Position == math.MaxUint64 {
		return v
	}
	c.Seek(o.Position - min(o.Position, 3))
	for sym, ok := c.Next(); ok && c.Position() <= o.Position; sym, ok = c.Next() {
		v.Before = append(v.Before, sym)
	}
	c.Seek(saturating.Add(o.Position, o.Length))
	for range 3 {
		if sym, ok := c.Next(); ok {
			v.After = append(v.After, sym)
		}
	}
	return v
}

// Check checks rules on each of the threads with these ids, or on all. A rule is one of these,
// where A, B and C are names as in a FindQuery:
//
//   - "A before B": no B runs before an A has
//   - "every A followed by B": when a thread ends, a B has run after its last A; one that is not
//     known to have ended leaves that open
//   - "every A followed by B before C": after an A no C runs before a B has
//   - "never A after B"
//   - "A and B balanced", "A and B balanced within N": no B runs without an A before it that is its
//     own, at most N of A are without their B at a time, and none when the thread ends; one that is
//     not known to have ended leaves these open
//
// What may have been kept before the record of a thread began, in the midst of it, or in a gap, is
// open as well: a B of the first rule, and one of the balanced without its A; a C behind an A and a
// gap; of a thread with gaps all that is not balanced.
//
//   - "never REGEX": no stretch matches
//   - "always REGEX": the paths that REGEX names, taken alone, are the beginning of what it
//     matches, from the thread's beginning on
//
// A regular expression is names, "." for any path, "!NAME" for any other, "|", "*", "+", "?",
// "{N}", "{N,M}" and parentheses. Marks are skipped, but in "never REGEX", where nothing matches
// across one.
//
// Of a rule that names what was not traced nothing is known, but that a path has run that never
// was to, or after one that it never was to run after.
//
// So it is with a rule whose verdict calls may change that are inlined: these are not counted.
//
// A rule that waits for what never ran in any thread, or for what is to follow it, says which of
// its routines that is, and is not broken for it.
//
// A rule with values is one of the first and the third of "never" and of both of "every", with at
// least one call in it that tests values: ROUTINE(ARGUMENT, ...) when control enters the routine,
// with =RESULT behind it when it has returned. An argument, and a result, is a number, or a name:
// it stands for the value that it has first in a match, and the others must be equal; _ stands for
// any. A comparison with a number or a name, and the number of the low bytes that count, may
// follow: n>0, <0:4. use(POINTER) is an access to the byte there, or by an address that is made of
// the pointer, and use(POINTER, BYTES) one to any of the bytes. Routines may be of code that is not
// traced, as far as traced code calls them. Of what threads do nothing counts but calls and returns
// of the routines that are named, and accesses if it has use. What matches crosses no gap. A value
// that is not known matches nothing, and how often one would have decided is counted. To replay
// takes some 100 ns an instruction, of the segments in which a match may begin or go on; up to
// mostLive parts of matches are kept.
//
// Each rule takes time in proportion to the right-hand sides, times the states of its automaton
// that their rules are met in; those that are balanced once, whatever N. Memory is bounded, and
// Check fails where that does not suffice. A witness takes as much again at most.
func Check(s *wpp.Snapshot, rules []string, tids ...int) (report *Report, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, tids)
	if err != nil {
		return nil, err
	}
	report = &Report{Rules: []RuleReport{}}
	for _, t := range threads {
		report.Gaps += t.Gaps
	}
	for _, text := range rules {
		check := checkRule
		if hasCalls(text) {
			check = checkValued
		}
		r, err := check(s, text, threads)
		if err != nil {
			return nil, err
		}
		report.Rules = append(report.Rules, *r)
	}
	return report, nil
}

// Validate fails where a rule makes no sense, whatever the snapshot.
func Validate(text string) error {
	if hasCalls(text) {
		if _, err := parseValuedRule(text); err != nil {
			return ruleError(text, err)
		}
		return nil
	}
	_, _, err := readRule(withoutSnapshot(), text)
	return err
}

func checkRule(s *wpp.Snapshot, text string, threads []*wpp.Thread) (*RuleReport, error) {
	a := newPathNames(s)
	r, check, err := readRule(a, text)
	if err != nil {
		return nil, err
	}
	report := &RuleReport{Rule: text, Kept: true, NeverRan: a.neverRan(), Witnesses: []Violation{}}
	inlined := a.inlined()
	report.NeverRan = slices.DeleteFunc(report.NeverRan,
		func(name string) bool { return inlined>>a.number[name]&1 == 1 })
	for _, t := range threads {
		v, err := check(t, beginsMidway(s, t))
		if err != nil {
			return nil, ruleError(text, err)
		}
		if v.violations > 0 || v.open > 0 {
			report.Kept = false
			report.Violations = saturating.Add(report.Violations, v.violations)
			report.Open = saturating.Add(report.Open, v.open)
			report.Witnesses = append(report.Witnesses, v.first)
		}
	}
	if hidden := a.untraced(); len(hidden) > 0 && (report.Violations == 0 || !r.isSure()) {
		return &RuleReport{Rule: text, Unknown: hidden, Witnesses: []Violation{}}, nil
	}
	if r.mayChange(report.Kept, report.Violations > 0, inlined) {
		return &RuleReport{Rule: text, Unknown: a.namesOf(inlined), Inlined: true,
			Witnesses: []Violation{}}, nil
	}
	if len(report.NeverRan) > 0 && report.Violations > 0 {
		if unmet, err := r.isUnmet(a, report.NeverRan, threads); err != nil {
			return nil, ruleError(text, err)
		} else if unmet {
			report.Unmet, report.Violations = report.Violations, 0
		}
	}
	return report, nil
}

// isUnmet reports whether a rule that is not kept would be, had routines of some names run that
// never did. What a rule of the others forbids has run, whatever else has.
func (r *rule) isUnmet(a *pathNames, neverRan []string, threads []*wpp.Thread) (bool, error) {
	switch r.kind {
	case neverOf, absent:
		return false, nil
	case always:
		var mask uint64
		for _, name := range neverRan {
			mask |= 1 << a.number[name]
		}
		without := *r
		without.regex = r.regex.without(mask)
		check, err := without.checker(a)
		for _, t := range threads {
			v, checkErr := check(t, beginsMidway(a.snapshot, t))
			if err = cmp.Or(err, checkErr); err != nil || v.violations > 0 {
				return false, err
			}
		}
		return true, err
	}
	return true, nil
}

// mayChange reports whether the verdict on a rule could be another if the paths of some atoms, a
// bit each, ran more often than is known.
func (r *rule) mayChange(kept, broken bool, atoms uint64) bool {
	more := func(atom int) bool { return atom != noAtom && atoms>>atom&1 == 1 }
	switch {
	case atoms == 0:
		return false
	case r.kind == before && kept:
		return more(r.b)
	case r.kind == before:
		return more(r.a) || !broken && more(r.b)
	case r.kind == followed && kept:
		return more(r.a) || more(r.c)
	case r.kind == followed:
		return more(r.b) || !broken && (more(r.a) || more(r.c))
	}
	return !broken || !r.isSure()
}

// isSure reports whether what breaks the rule does so whatever else has run, even between what is
// known to have.
func (r *rule) isSure() bool {
	return r.kind == neverOf || r.kind == absent && r.regex.isOneOf()
}

// readRule returns a rule, and what checks it.
func readRule(a *pathNames, text string) (*rule, checker, error) {
	r, err := parseRule(a, text)
	if err != nil {
		return nil, nil, ruleError(text, err)
	}
	check, err := r.checker(a)
	if err != nil {
		return nil, nil, ruleError(text, err)
	}
	return r, check, nil
}

func ruleError(text string, err error) error {
	return fmt.Errorf("rule %q: %w", names.Printable(text), err)
}

// Midway counts the threads that had run before their records begin.
func Midway(s *wpp.Snapshot) (n int, err error) {
	defer wpp.Recover(&err)
	for i := range s.Threads {
		if beginsMidway(s, &s.Threads[i]) {
			n++
		}
	}
	return n, nil
}

// beginsMidway reports whether a thread had run before its record begins.
func beginsMidway(s *wpp.Snapshot, t *wpp.Thread) bool {
	sym, ok := stream.New(t.Grammar).Next()
	return ok && s.Symbols[sym].IsMark &&
		(s.Symbols[sym].Mark == ops.Resume || s.Symbols[sym].Mark == ops.Gap)
}

// A verdict is what a thread has to do with a rule.
type verdict struct {
	violations, open uint64
	first            Violation // or the first that is open, where there is no violation
}

// due counts what is due where the stream of a thread ends, and says so of the first.
func (v *verdict) due(t *wpp.Thread, n uint64) (why string) {
	if t.Ended {
		v.violations = saturating.Add(v.violations, n)
		return "not followed up to the end"
	}
	v.open = saturating.Add(v.open, n)
	return "not followed yet where the record ends"
}

// excuse takes n violations for open: what would keep the rule may have run before the record
// begins.
func (v *verdict) excuse(n uint64, why string) (excused string) {
	v.violations -= n
	v.open = saturating.Add(v.open, n)
	return inRecord(why)
}

// A checker gives the verdict on a thread. midway: it had run before its record begins.
type checker func(t *wpp.Thread, midway bool) (verdict, error)

func (r *rule) checker(a *pathNames) (checker, error) {
	if r.kind == balanced {
		for _, mask := range a.mask {
			if mask>>r.a&1 == 1 && mask>>r.b&1 == 1 {
				return nil, errors.New("a path is both")
			}
		}
		if !a.hasGaps() {
			return func(t *wpp.Thread, midway bool) (verdict,
				error) {
				return r.checkBalance(a, t, midway, false), nil
			}, nil
		}
		gaps := classify(a)
		gaps.resolve = func(_, class uint32) (uint32, bool) { return 0, class == gapClass }
		return func(t *wpp.Thread, midway bool) (verdict, error) {
			n, _, err := newSweep(t.Grammar, gaps, false).whole()
			return r.checkBalance(a, t, midway, n > 0), err
		}, nil
	}
	across, err := r.automaton(a)
	if err != nil {
		return nil, err
	}
	within := across
	if r.restsOnGaps() && a.hasGaps() {
		if within, err = r.forgetting(a); err != nil {
			return nil, err
		}
	}
	begins, beginsAtEnd := r.beginning(a, false), r.beginning(a, true)
	if r.kind == absent {
		p, err := newPositions(r.regex.reversed())
		if err != nil {
			return nil, err
		}
		begins = newSubsets(a, p, here)
	}
	return func(t *wpp.Thread, midway bool) (verdict, error) {
		return r.check(t, midway, within, across, begins, beginsAtEnd)
	}, nil
}

// hasGaps reports whether any thread of the snapshot, if there is one, has a gap.
func (a *pathNames) hasGaps() bool {
	for sym := range a.mask {
		if s := &a.snapshot.Symbols[sym]; s.IsMark && s.Mark == ops.Gap {
			return true
		}
	}
	return false
}

// beginning is the automaton that, read backward from where a rule is broken, or from the end of
// the thread, hits where what breaks it begins: at the nearest A or B that forbids it, or, if none
// does, at once.
func (r *rule) beginning(a *pathNames, atEnd bool) *automaton {
	x := classify(a)
	atom := r.a
	if r.kind == neverOf {
		atom = r.b
	}
	if atEnd {
		x.start = 1
	}
	x.resolve = func(state, class uint32) (uint32, bool) {
		if r.kind == before || r.kind == always {
			return 1, true
		}
		return 1, state == 1 && atom != noAtom && x.mask[class]>>atom&1 == 1
	}
	return x
}

// check reads a thread by two automata: within begins anew at each gap, across takes gaps for
// nothing. What breaks the rule by across alone may be kept in a gap. Where that cannot be they are
// the same.
func (r *rule) check(t *wpp.Thread, midway bool, within, across, begins,
	beginsAtEnd *automaton) (v verdict, err error) {
	sweep := newSweep(t.Grammar, within, false)
	violations, exit, err := sweep.whole()
	if err != nil {
		return v, err
	}
	v.violations = violations
	why, isDue := r.why(), r.isDue(exit)
	mayBeDue := false
	if within != across {
		all := newSweep(t.Grammar, across, false)
		n, exit, err := all.whole()
		if err != nil {
			return v, err
		}
		v.open = n - violations
		if mayBeDue = !isDue && r.isDue(exit); violations == 0 {
			sweep, why = all, inRecord(why)
		}
	}
	if midway && (r.kind == before || r.kind == always) && violations > 0 {
		why = v.excuse(violations, why)
	}
	end := t.Grammar.Length(0) - 1
	switch {
	case v.violations+v.open > 0:
		hits, err := sweep.hits(0, 0, 1)
		if err != nil {
			return v, err
		}
		end = hits[0].distance
	case isDue || mayBeDue:
		if why, begins = v.due(t, 1), beginsAtEnd; mayBeDue && t.Ended {
			why = v.excuse(1, "not followed")
		}
	default:
		return v, nil
	}
	cursor := stream.New(t.Grammar)
	o, err := stretch(t, newSweep(t.Grammar, begins, true), cursor, end)
	v.first = violation(why, o, cursor)
	return v, err
}

// inRecord says of what breaks a rule that something not recorded may have kept it.
func inRecord(why string) string { return why + " in what is recorded" }

func (r *rule) why() string {
	switch {
	case r.kind == before:
		return "ran before"
	case r.kind == followed:
		return "not followed before"
	case r.kind == neverOf:
		return "ran after"
	case r.kind == always:
		return "out of order"
	}
	return "ran"
}

// checkBalance counts the B without their A, the A without their B, and the times that the depth
// rises beyond the limit as one. Where the thread has gaps any of these may be balanced there.
func (r *rule) checkBalance(a *pathNames, t *wpp.Thread, midway, gaps bool) (v verdict) {
	midway = midway || gaps
	x := newBalances(r, a, t.Grammar)
	whole := x.whole()
	lone, deep := uint64(-whole.lowest), whole.rise > int64(r.limit)
	if v.violations = lone; deep {
		v.violations = saturating.Add(v.violations, 1)
	}
	// Of a B alone and of too many A, the one that comes first is reported.
	at, why := uint64(math.MaxUint64), ""
	if lone > 0 {
		at, why = x.firstBelow(), "without one before"
		if midway {
			why = v.excuse(lone, why)
		}
	}
	if deep {
		whyDeep := fmt.Sprintf("more than %d deep", r.limit)
		if gaps {
			whyDeep = v.excuse(1, whyDeep)
		}
		if p := x.firstAbove(); p < at || midway && !gaps { // then what is alone is excused
			at, why = p, whyDeep
		}
	}
	if open := uint64(addSigned(whole.sum, -whole.lowest)); open > 0 {
		whyDue := v.due(t, open)
		if gaps && t.Ended {
			whyDue = v.excuse(open, "not followed")
		}
		if why == "" || midway && !gaps && !deep && t.Ended {
			at, why = x.firstOpen(), whyDue
		}
	}
	if why == "" {
		return verdict{}
	}
	cursor := stream.New(t.Grammar)
	v.first = violation(why, occurrence(t, cursor, at, 1), cursor)
	return v
}

package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/query/internal/deeds"
	"wpptrace/query/values"
)

// A Match is where a pattern with values matches: the shortest stretch that ends there.
type Match struct {
	Deeds []Deed // that the pattern names, in order; of many, the first ones and the last
	Bound []Binding
}

// A Deed is a call, a return or an access to memory: what a pattern with values names.
type Deed struct {
	Text string // as in the pattern
	deeds.Place
}

// A Binding is the value that a name of a pattern stands for.
type Binding struct {
	Name        string
	Value       uint64
	IsConfirmed bool // else nothing shows that it is wrong
}

// Valued is what is known of a pattern with values besides its matches.
type Valued struct {
	// how often a value that was not known would have decided whether something matches
	Undecided uint64
	// how often code that is not traced was called by a pointer: by which name is not known
	Unnamed uint64
}

// valued is a pattern over what threads do, with values.
type valued struct {
	atoms     []*atom
	bound     numbering // of the values' names
	routines  numbering
	positions *positions
	class     []int  // of each position: the first that leads where it does
	rests     []bool // of each class: what matches no atom behind it changes nothing
	leads     []bool // and it leads anywhere
}

// hasCalls reports whether a text is a pattern with values, or a rule with one.
func hasCalls(text string) bool {
	list, _ := tokens(text)
	return slices.ContainsFunc(list, func(t token) bool { return t.call != nil })
}

// newValued makes what reads a pattern. It fails where that is none.
func newValued(list []token) (*valued, error) {
	v := &valued{}
	p, err := parsePattern(list, v.add)
	if err != nil {
		return nil, err
	}
	return v, v.compile(p)
}

func (v *valued) add(name token) (int, error) {
	if len(v.atoms) == mostNames {
		return 0, fmt.Errorf("more than %d calls", mostNames)
	}
	a, err := atomOf(name, &v.bound, &v.routines)
	v.atoms = append(v.atoms, a)
	return len(v.atoms) - 1, err
}

func (v *valued) compile(p *pattern) (err error) {
	if v.positions, err = newPositions(p); err != nil {
		return err
	}
	if v.positions.last.has(0) {
		return errors.New("it matches where nothing ran")
	}
	if err := v.checkNames(); err != nil {
		return err
	}
	follow := v.positions.follow
	for p := range follow {
		first := slices.IndexFunc(follow, func(b bitset) bool { return slices.Equal(b, follow[p]) })
		v.class = append(v.class, first)
	}
	for p := range follow {
		stays, leads, rests := false, false, true
		for to := range follow[p].all() {
			leads = true
			if path := v.positions.path[to]; path.not || path.atom == anyPath {
				stays = true
				rests = rests && v.class[to] == p && !v.positions.last.has(to)
			}
		}
		v.rests, v.leads = append(v.rests, rests && stays), append(v.leads, leads)
	}
	return nil
}

// checkNames fails where a name is compared with that never has a value.
func (v *valued) checkNames() error {
	given, needed := map[int]bool{}, map[int]bool{}
	for _, path := range v.positions.path[1:] {
		if path.atom == anyPath {
			continue
		}
		for _, n := range append([]int{path.atom}, path.nor...) {
			a := v.atoms[n]
			for _, t := range append([]boundTest{a.result}, a.arguments...) {
				needed[t.other] = true
				if a.kind == deeds.Used {
					needed[t.name] = true
				} else if !path.not {
					given[t.name] = true
				}
			}
		}
	}
	for n, name := range v.bound.list {
		if needed[n] && !given[n] {
			return fmt.Errorf("no call gives %s a value", name)
		}
	}
	return nil
}

// isFirst reports whether a match may begin with a deed.
func (v *valued) isFirst(kind deeds.Kind, routine int) bool {
	for p := range v.positions.follow[0].all() {
		path := v.positions.path[p]
		if path.not || path.atom == anyPath {
			return true
		}
		if a := v.atoms[path.atom]; a.kind == kind && (kind == deeds.Used || a.routine == routine) {
			return true
		}
	}
	return false
}

// has reports whether an atom is of a kind.
func (v *valued) has(kind deeds.Kind) bool {
	return slices.ContainsFunc(v.atoms, func(a *atom) bool { return a.kind == kind })
}

// A valuedReading is what reads the threads of a snapshot.
type valuedReading struct {
	*valued
	*deeds.Deeds
	snapshot *wpp.Snapshot
	Valued
	found func(thread int, end, since uint64, m Match)
	lost  uint64 // parts of matches that a gap has ended
}

// on begins to read the threads of a snapshot. found is given each match.
func (v *valued) on(s *wpp.Snapshot,
	found func(thread int, end, since uint64, m Match)) (*valuedReading, error) {
	if !values.Has(s) {
		return nil, fmt.Errorf("%w; names with parentheses are put in quotes", values.ErrNone)
	}
	x, err := deeds.Of(s, deeds.Asked{Names: v.routines.list, Uses: v.has(deeds.Used),
		Returns: v.has(deeds.Returned), IsFirst: v.isFirst})
	if err != nil {
		return nil, err
	}
	return &valuedReading{valued: v, Deeds: x, snapshot: s, found: found}, nil
}

// An unfinished match is the part of one that is left at a thread's end.
type unfinished struct {
	Match
	since uint64 // position where it begins
}

// thread reads a thread, by its index, and returns the parts of matches that are left at its end.
func (r *valuedReading) thread(thread int) (left []unfinished, err error) {
	m := newMatcher(r.valued)
	if err := r.Read(thread, &threadReading{r, m, thread}); err != nil {
		return nil, err
	}
	r.Undecided += m.undecided
	r.Valued.Unnamed = r.Deeds.Unnamed()
	for _, s := range slices.SortedFunc(maps.Values(m.live), compareStates) {
		if s.isDoubted {
			r.Undecided++
		} else {
			left = append(left, unfinished{r.match(s), s.since})
		}
	}
	return left, nil
}

// A threadReading gives the deeds of a thread to a matcher. It is a deeds.Reader.
type threadReading struct {
	whole   *valuedReading
	matcher *matcher
	thread  int
}

func (x *threadReading) Read(d *deeds.Deed) error {
	if err := x.matcher.read(d); err != nil {
		return err
	}
	x.whole.give(x.thread, x.matcher, d.At.Position)
	return nil
}

func (x *threadReading) Forget() { x.whole.lost += uint64(x.matcher.clear()) }

func (x *threadReading) IsIdle() bool { return len(x.matcher.live) == 0 }

// give gives the matches that end with a deed: of those with the same values the shortest.
func (r *valuedReading) give(thread int, m *matcher, end uint64) {
	if len(m.hits) == 0 {
		return
	}
	slices.SortStableFunc(m.hits, func(a, b *state) int {
		return cmp.Or(slices.Compare(a.bound.is[:], b.bound.is[:]),
			cmp.Compare(a.bound.known, b.bound.known), cmp.Compare(b.since, a.since))
	})
	var last *state
	for _, s := range m.hits {
		if last == nil || last.bound != s.bound {
			r.found(thread, end, s.since, r.match(s))
		}
		last = s
	}
}

func (r *valuedReading) match(s *state) Match {
	return Match{s.deeds.list(), s.bound.shown(r.bound.list)}
}

// findValued is Find of a pattern with values.
func (q *FindQuery) findValued(s *wpp.Snapshot, threads []*wpp.Thread) (*FindReport, error) {
	v, err := q.valued()
	if err != nil {
		return nil, err
	}
	report := &FindReport{Query: *q, Valued: &Valued{}}
	count := uint64(0)
	reading, err := v.on(s, func(thread int, end, since uint64, m Match) {
		if count++; count >= q.First && count-q.First < uint64(q.Top) {
			report.Occurrences = append(report.Occurrences,
				occurrenceOf(&s.Threads[thread], end, since, m))
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range s.Threads {
		if !slices.Contains(threads, &s.Threads[i]) {
			continue
		}
		before := count
		if _, err := reading.thread(i); err != nil {
			return nil, err
		}
		report.Threads = append(report.Threads, ThreadCount{s.Threads[i].TID, count - before})
	}
	report.Count, *report.Valued = count, reading.Valued
	return report, nil
}

func (q *FindQuery) valued() (*valued, error) {
	list, err := tokens(q.Pattern)
	if err != nil {
		return nil, err
	}
	return newValued(list)
}

func occurrenceOf(t *wpp.Thread, end, since uint64, m Match) Occurrence {
	return Occurrence{TID: t.TID, Position: since, Length: end - since + 1, Symbols: []uint32{},
		Match: &m}
}

// A valuedRule is a rule with values.
type valuedRule struct {
	*valued
	kind ruleKind
	isC  bool // of what is followed: before something
}

// parseValuedRule reads a rule with values.
func parseValuedRule(text string) (r *valuedRule, err error) {
	list, err := tokens(text)
	if err != nil {
		return nil, err
	}
	sign := func(text string) token { return token{text: text} }
	r = &valuedRule{kind: absent}
	p := &ruleParser{rest: list}
	switch {
	case p.shape("every", "_", "followed", "by", "_"):
		r.kind = followed
		list = []token{list[1], sign("!"), list[4], sign("*")}
	case p.shape("every", "_", "followed", "by", "_", "before", "_"):
		r.kind, r.isC = followed, true
		list = []token{list[1], sign("!"), list[4], sign("*"), list[6]}
	case p.shape("never", "_", "after", "_"):
		r.kind = neverOf
		list = []token{list[3], {text: ".", name: true}, sign("*"), list[1]}
	case len(list) > 1 && list[0].word("never"):
		list = list[1:]
	default:
		return nil, errors.New(`with values, it is one of "never REGEX", "never A after B", ` +
			`"every A followed by B [before C]"`)
	}
	r.valued, err = newValued(list)
	if err == nil && r.kind == followed && !r.isC {
		clear(r.positions.last) // what is left at the end is what matches
	}
	return r, err
}

// why says what breaks the rule.
func (r *valuedRule) why() string {
	switch {
	case r.kind == neverOf:
		return "ran after"
	case r.kind == followed && r.isC:
		return "not followed before"
	}
	return "ran"
}

// check checks a rule with values.
func (r *valuedRule) check(s *wpp.Snapshot, text string,
	threads []*wpp.Thread) (*RuleReport, error) {
	report := &RuleReport{Rule: text, Witnesses: []Violation{}, Valued: &Valued{}}
	var first *Violation // of the thread
	witness := func(why string, o Occurrence) {
		if first == nil {
			first = &Violation{why, o, []uint32{}, []uint32{}}
		}
	}
	reading, err := r.on(s, func(thread int, end, since uint64, m Match) {
		report.Violations++
		witness(r.why(), occurrenceOf(&s.Threads[thread], end, since, m))
	})
	if err != nil {
		return nil, err
	}
	for i := range s.Threads {
		t := &s.Threads[i]
		if !slices.Contains(threads, t) {
			continue
		}
		first = nil
		left, err := reading.thread(i)
		if err != nil {
			return nil, err
		}
		if r.kind == followed && !r.isC {
			slices.SortStableFunc(left, func(a, b unfinished) int {
				return cmp.Compare(a.since, b.since)
			})
			for _, m := range left {
				var v verdict
				witness(v.due(t, 1), occurrenceOf(t, m.since, m.since, m.Match))
				report.Violations += v.violations
				report.Open += v.open
			}
		}
		if first != nil {
			report.Witnesses = append(report.Witnesses, *first)
		}
	}
	if r.kind == followed {
		report.Open += reading.lost
	}
	*report.Valued = reading.Valued
	if inlined := reading.inlined(); len(inlined) > 0 && report.Violations == 0 {
		return &RuleReport{Rule: text, Unknown: inlined, Inlined: true,
			Witnesses: []Violation{}}, nil
	}
	report.Kept = report.Violations == 0 && report.Open == 0 && report.Undecided == 0
	report.NeverRan = reading.neverRan()
	if r.kind == followed && !r.isC && len(report.NeverRan) > 0 {
		report.Unmet, report.Violations = report.Violations, 0
	}
	return report, nil
}

// neverRan returns the names of traced routines of which no path ran.
func (r *valuedReading) neverRan() []string {
	a := newPathNames(r.snapshot)
	a.names = r.Traced()
	return a.neverRan()
}

// inlined returns the names of routines that are inlined as well.
func (r *valuedReading) inlined() []string {
	a := newPathNames(r.snapshot)
	a.names = r.routines.list
	return a.namesOf(a.inlined())
}

// checkValued checks a rule with values.
func checkValued(s *wpp.Snapshot, text string, threads []*wpp.Thread) (*RuleReport, error) {
	r, err := parseValuedRule(text)
	if err != nil {
		return nil, ruleError(text, err)
	}
	report, err := r.check(s, text, threads)
	if err != nil {
		return nil, ruleError(text, err)
	}
	return report, nil
}

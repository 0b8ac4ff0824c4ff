package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wpptrace/compress/wet/machine"
	"wpptrace/query/internal/deeds"
)

// Most of what a matcher keeps in mind.
const (
	mostBound  = 8       // names in a pattern
	mostLive   = 1 << 18 // states
	mostPages  = 1 << 12 // of what use(POINTER, BYTES) is looked up by
	mostDeeds  = 16      // of a match that are kept
	pageOfUses = 12      // bits of an address within a page
)

var errTooManyLive = fmt.Errorf("more than %d values are followed at once: test the first call "+
	"more narrowly, as in free(p!=0), or ask of fewer threads with --tid", mostLive)

// A matcher reads the deeds of a thread by an automaton whose states have values: those that names
// stand for. What states do on most deeds, nothing, costs nothing: they are found by the values
// that they wait for.
type matcher struct {
	*valued
	most     int // states, at once
	live     map[stateKey]*state
	waiting  [][]*waiting        // of each class, by the positions behind it
	restless map[*state]struct{} // states that no deed leaves as they are
	hits     []*state            // matches that end with the last deed that was read
	// deeds of which it is not known whether a match begins, ends or goes on
	undecided uint64
	touched   []*state
	next      []*state
	step      uint64 // number of deeds
}

// A state is part of a match.
type state struct {
	stateKey
	since     uint64 // position of its first deed
	deeds     *chain
	isDoubted bool   // a value was not known that could have ended it
	touchedIn uint64 // step
}

type stateKey struct {
	class int // where it is in the pattern: see valued.class
	bound bindings
}

// bindings are what names stand for.
type bindings struct {
	is          [mostBound]uint64
	known       uint8 // a bit each: it stands for something
	unconfirmed uint8 // nothing shows that this is wrong
}

func (b *bindings) has(name int) bool { return b.known>>name&1 == 1 }

// A chain is the deeds of a match, the last one first.
type chain struct {
	deed   Deed
	before *chain
	length int
}

// waiting are the states of a class by what they need for one of the atoms behind it.
type waiting struct {
	atom *atom
	by   map[waitKey]map[*state]struct{}
	all  map[*state]struct{} // those of by
	any  map[*state]struct{} // those that need nothing in particular
}

// A waitKey is a value that an argument must have: the index of a test, or of what is used.
type waitKey struct {
	test  int
	value uint64
}

// The tests that are no arguments'.
const (
	theResult = -1
	thePage   = -2
)

func newMatcher(v *valued) *matcher {
	m := &matcher{valued: v, most: mostLive}
	m.clear()
	return m
}

// clear forgets all states, and returns how many they were.
func (m *matcher) clear() (n int) {
	n = len(m.live)
	if n > 0 || m.live == nil {
		m.live, m.restless = map[stateKey]*state{}, map[*state]struct{}{}
		m.waiting = make([][]*waiting, len(m.positions.path))
		for class := range m.waiting {
			for p := range m.positions.follow[class].all() {
				if m.rests[class] {
					m.waiting[class] = m.appendWaiting(m.waiting[class], m.positions.path[p])
				}
			}
		}
	}
	return n
}

func (m *matcher) appendWaiting(list []*waiting, path *pattern) []*waiting {
	if path.atom == anyPath {
		return list
	}
	for _, atom := range append([]int{path.atom}, path.nor...) {
		list = append(list, &waiting{m.atoms[atom], map[waitKey]map[*state]struct{}{},
			map[*state]struct{}{}, map[*state]struct{}{}})
	}
	return list
}

// read reads a deed.
func (m *matcher) read(d *deeds.Deed) error {
	m.step++
	m.touched, m.next, m.hits = m.touched[:0], m.next[:0], m.hits[:0]
	for s := range m.restless {
		m.touch(s)
	}
	if len(m.live) > 0 {
		for class := range m.waiting {
			for _, w := range m.waiting[class] {
				if w.atom.isOf(d) {
					m.lookUp(w, d)
				}
			}
		}
	}
	begin := state{since: d.At.Position}
	isUndecided := m.advance(&begin, d)
	slices.SortFunc(m.touched, compareStates)
	for _, s := range m.touched {
		m.remove(s)
	}
	for _, s := range m.touched {
		isUndecided = m.advance(s, d) || isUndecided
	}
	for _, s := range m.next {
		if err := m.add(s); err != nil {
			return err
		}
	}
	if isUndecided {
		m.undecided++
	}
	return nil
}

// compareStates has an order that none of maps is.
func compareStates(a, b *state) int {
	return cmp.Or(cmp.Compare(a.class, b.class), slices.Compare(a.bound.is[:], b.bound.is[:]),
		cmp.Compare(a.bound.known, b.bound.known),
		cmp.Compare(a.bound.unconfirmed, b.bound.unconfirmed))
}

func (m *matcher) touch(s *state) {
	if s.touchedIn != m.step {
		s.touchedIn = m.step
		m.touched = append(m.touched, s)
	}
}

// lookUp touches the states that wait for what a deed may be.
func (m *matcher) lookUp(w *waiting, d *deeds.Deed) {
	a := w.atom
	for s := range w.any {
		m.touch(s)
	}
	if len(w.all) == 0 {
		return
	}
	touch := func(key waitKey) {
		for s := range w.by[key] {
			m.touch(s)
		}
	}
	touchValue := func(test int, v deeds.Value, t *boundTest) {
		if t.name < 0 {
			return
		}
		if v.Known == machine.Unknown {
			for s := range w.all {
				m.touch(s)
			}
			return
		}
		touch(waitKey{test, uint64(t.test.of(v.Is))})
	}
	if a.kind != deeds.Used {
		for i := range a.arguments {
			touchValue(i, d.Arguments[i], &a.arguments[i])
		}
		if a.kind == deeds.Returned {
			touchValue(theResult, d.Result, &a.result)
		}
		return
	}
	for _, b := range d.Bases {
		if b.Known != machine.Unknown {
			touch(waitKey{0, b.Is})
		}
	}
	for i := range d.Accesses {
		x := &d.Accesses[i]
		if x.At == machine.Unknown {
			for s := range w.all {
				m.touch(s)
			}
			continue
		}
		last := x.Addr + uint64(max(x.Size, 1)) - 1
		for page := x.Addr >> pageOfUses; page <= last>>pageOfUses; page++ {
			touch(waitKey{thePage, page})
		}
	}
}

// keysOf are the values that a state waits for from an atom; none: any.
func keysOf(s *state, a *atom) (list []waitKey) {
	if a.kind == deeds.Used {
		at, size, ok := a.span(&s.bound)
		if !ok || size>>pageOfUses > mostPages {
			return nil
		}
		list = append(list, waitKey{0, at})
		for page := at >> pageOfUses; page <= (at+max(size, 1)-1)>>pageOfUses; page++ {
			list = append(list, waitKey{thePage, page})
		}
		return list
	}
	for i := range a.arguments {
		if t := &a.arguments[i]; t.name >= 0 && s.bound.has(t.name) {
			return []waitKey{{i, uint64(t.test.of(s.bound.is[t.name]))}}
		}
	}
	if t := &a.result; a.kind == deeds.Returned && t.name >= 0 && s.bound.has(t.name) {
		return []waitKey{{theResult, uint64(t.test.of(s.bound.is[t.name]))}}
	}
	return nil
}

// add adds a state, unless there is one that says more: the later one, of those without doubt.
func (m *matcher) add(s *state) error {
	if old := m.live[s.stateKey]; old != nil {
		if old.isDoubted == s.isDoubted && old.since >= s.since || !old.isDoubted && s.isDoubted {
			return nil
		}
		m.remove(old)
	}
	if len(m.live) == m.most {
		return errTooManyLive
	}
	m.live[s.stateKey] = s
	if !m.rests[s.class] {
		m.restless[s] = struct{}{}
		return nil
	}
	for _, w := range m.waiting[s.class] {
		keys := keysOf(s, w.atom)
		if len(keys) == 0 {
			w.any[s] = struct{}{}
			continue
		}
		w.all[s] = struct{}{}
		for _, key := range keys {
			if w.by[key] == nil {
				w.by[key] = map[*state]struct{}{}
			}
			w.by[key][s] = struct{}{}
		}
	}
	return nil
}

func (m *matcher) remove(s *state) {
	delete(m.live, s.stateKey)
	if !m.rests[s.class] {
		delete(m.restless, s)
		return
	}
	for _, w := range m.waiting[s.class] {
		delete(w.any, s)
		if _, ok := w.all[s]; !ok {
			continue
		}
		delete(w.all, s)
		for _, key := range keysOf(s, w.atom) {
			if delete(w.by[key], s); len(w.by[key]) == 0 {
				delete(w.by, key)
			}
		}
	}
}

// advance puts into next what a state becomes by a deed, and gives the match that ends there. It
// reports whether a value was missing for one.
func (m *matcher) advance(s *state, d *deeds.Deed) (isUndecided bool) {
	for p := range m.positions.follow[s.class].all() {
		path := m.positions.path[p]
		bound, met, isDoubted := s.bound, s.deeds, s.isDoubted
		if path.atom != anyPath {
			a, with := m.atoms[path.atom], s.bound
			is := a.matches(d, &with)
			for _, other := range path.nor {
				unused := s.bound
				is = is.or(m.atoms[other].matches(d, &unused))
			}
			switch {
			case is == notKnown && path.not:
				isDoubted = true
			case is == notKnown:
				isUndecided = true
				continue
			case (is == isMatch) == path.not:
				continue
			case !path.not:
				bound, met = with, met.with(Deed{a.text, d.At})
			}
		}
		to := &state{stateKey: stateKey{m.class[p], bound}, since: s.since, deeds: met,
			isDoubted: isDoubted}
		switch {
		case !m.positions.last.has(p):
		case isDoubted:
			isUndecided = true
		default:
			m.hits = append(m.hits, to)
		}
		if m.leads[to.class] {
			m.next = append(m.next, to)
		}
	}
	return isUndecided
}

// with adds a deed. Of many, the first and the last ones are kept.
func (c *chain) with(d Deed) *chain {
	length := 1
	if c != nil {
		if length = c.length + 1; length > mostDeeds {
			return &chain{d, c.before, mostDeeds}
		}
	}
	return &chain{d, c, length}
}

func (c *chain) list() (list []Deed) {
	for ; c != nil; c = c.before {
		list = append(list, c.deed)
	}
	slices.Reverse(list)
	return list
}

// A match is what is known of whether a deed is one that a pattern asks for.
type match uint8

const (
	noMatch match = iota
	isMatch
	notKnown
)

// An atom is a call of a pattern.
type atom struct {
	text      string
	kind      deeds.Kind
	routine   int
	arguments []boundTest
	result    boundTest
}

// A boundTest is a test with the numbers of its names; -1: it has none.
type boundTest struct {
	test        test
	name, other int
}

// isOf reports whether a deed is one of the kind, of the routine.
func (a *atom) isOf(d *deeds.Deed) bool {
	return a.kind == d.Kind && (a.kind == deeds.Used || a.routine == d.Routine)
}

// matches says whether a deed is what the atom asks for, and binds the names that it gives.
func (a *atom) matches(d *deeds.Deed, b *bindings) match {
	switch {
	case !a.isOf(d):
		return noMatch
	case a.kind == deeds.Used:
		return a.matchesUse(d, b)
	}
	is := isMatch
	for i := range a.arguments {
		is = is.and(a.arguments[i].matches(d.Arguments[i], b))
	}
	if a.kind == deeds.Returned {
		is = is.and(a.result.matches(d.Result, b))
	}
	return is
}

// and: what one denies is none, whatever the other.
func (m match) and(o match) match {
	switch {
	case m == noMatch || o == noMatch:
		return noMatch
	case m == notKnown || o == notKnown:
		return notKnown
	}
	return isMatch
}

// or: what one says is one, whatever the other.
func (m match) or(o match) match {
	switch {
	case m == isMatch || o == isMatch:
		return isMatch
	case m == notKnown || o == notKnown:
		return notKnown
	}
	return noMatch
}

// matches tests a value.
func (t *boundTest) matches(v deeds.Value, b *bindings) match {
	if t.name < 0 && t.test.as == none {
		return isMatch
	}
	if v.Known == machine.Unknown {
		return notKnown
	}
	n := t.test.of(v.Is)
	if t.test.as != none {
		to := t.test.to
		if t.other >= 0 {
			if !b.has(t.other) {
				return notKnown
			}
			to = t.test.of(b.is[t.other])
		}
		holds := t.test.as.holds(n, to)
		if t.other < 0 && t.test.size == 8 && isInt(n, to) {
			holds = t.test.as.holds(int64(int32(n)), to)
		}
		if !holds {
			return noMatch
		}
	}
	switch {
	case t.name < 0:
	case b.has(t.name):
		if t.test.of(b.is[t.name]) != n {
			return noMatch
		}
	default:
		b.is[t.name], b.known = uint64(n), b.known|1<<t.name
		if v.Known != machine.Confirmed {
			b.unconfirmed |= 1 << t.name
		}
	}
	return isMatch
}

// span is what use asks for: the address of some bytes; of a pointer alone, of one. ok is false
// where that is not known.
func (a *atom) span(b *bindings) (at, size uint64, ok bool) {
	number := func(t *boundTest) (uint64, bool) {
		if t.name < 0 {
			return uint64(t.test.to), true
		}
		return b.is[t.name], b.has(t.name)
	}
	if at, ok = number(&a.arguments[0]); !ok || len(a.arguments) == 1 {
		return at, 1, ok
	}
	size, ok = number(&a.arguments[1])
	return at, size, ok
}

// leastPointer is the lowest address that a process may have memory at, by the usual setting of
// vm.mmap_min_addr: a register with less is no pointer, but an index perhaps.
const leastPointer = 1 << 16

func (a *atom) matchesUse(d *deeds.Deed, b *bindings) match {
	at, size, ok := a.span(b)
	if !ok {
		return notKnown
	}
	is := noMatch
	for i := range d.Accesses {
		x := &d.Accesses[i]
		switch {
		case x.At == machine.Unknown:
			is = notKnown
		case x.Addr-at < size || at-x.Addr < uint64(max(x.Size, 1)) && size > 0:
			return isMatch
		}
	}
	if len(a.arguments) == 1 && at >= leastPointer {
		for _, x := range d.Bases {
			if x.Known != machine.Unknown && x.Is == at {
				return isMatch
			}
		}
	}
	return is
}

// shown is what names stand for.
func (b *bindings) shown(list []string) (bound []Binding) {
	for i, name := range list {
		if b.has(i) {
			bound = append(bound, Binding{name, b.is[i], b.unconfirmed>>i&1 == 0})
		}
	}
	return bound
}

// A numbering gives names numbers.
type numbering struct{ list []string }

func (n *numbering) of(name string) int {
	if name == "" {
		return -1
	}
	if i := slices.Index(n.list, name); i >= 0 {
		return i
	}
	n.list = append(n.list, name)
	return len(n.list) - 1
}

var errNoCall = errors.New("a pattern with values has calls alone, as in free(p), malloc()=p, " +
	"work() and use(p)")

// atomOf makes an atom of a name in a pattern.
func atomOf(name token, bound, routines *numbering) (*atom, error) {
	c := name.call
	if c == nil {
		plain, isCall := strings.CutSuffix(name.text, "()")
		if !isCall {
			return nil, errNoCall
		}
		c = &call{text: name.text, name: plain}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	number := func(t test) boundTest { return boundTest{t, bound.of(t.name), bound.of(t.other)} }
	a := &atom{text: c.text, kind: c.kind, routine: -1}
	for _, t := range c.arguments {
		a.arguments = append(a.arguments, number(t))
	}
	a.result = number(c.result)
	if c.kind != deeds.Used {
		a.routine = routines.of(c.name)
	}
	if len(bound.list) > mostBound {
		return nil, fmt.Errorf("more than %d names for values", mostBound)
	}
	return a, nil
}

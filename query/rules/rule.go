package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"wpptrace/query/names"
)

// A rule is a property of the order of a thread's paths, read from text.
type rule struct {
	text  string
	kind  ruleKind
	a, b  int // atoms
	c     int // or noAtom
	limit uint64
	regex *pattern
}

type ruleKind int

const (
	before   ruleKind = iota // A before B
	followed                 // every A followed by B [before C]
	neverOf                  // never A after B
	balanced                 // A and B balanced [within N]
	absent                   // never REGEX
	always                   // always REGEX
)

const (
	noAtom = -1

	// mostDepth is the greatest limit of what is balanced.
	mostDepth = 1_000_000_000
)

// parseRule reads a rule. Words of the language that are to be names of routines are put in quotes.
func parseRule(a *pathNames, text string) (*rule, error) {
	list, err := tokens(text)
	if err != nil {
		return nil, err
	}
	r := &rule{text: text, a: noAtom, b: noAtom, c: noAtom, limit: mostDepth}
	p := &ruleParser{names: a, rest: list}
	switch {
	case p.shape("_", "before", "_"):
		r.kind = before
	case p.shape("every", "_", "followed", "by", "_"), p.shape("every", "_", "followed", "by", "_",
		"before", "_"):
		r.kind = followed
	case p.shape("never", "_", "after", "_"):
		r.kind = neverOf
	case p.shape("_", "and", "_", "balanced"):
		r.kind = balanced
	case p.shape("_", "and", "_", "balanced", "within", "_"):
		r.kind = balanced
		last := len(list) - 1
		if r.limit, err = strconv.ParseUint(list[last].text, 10, 64); err != nil ||
			r.limit > mostDepth {
			return nil, fmt.Errorf("%s is no depth up to %d", names.Printable(list[last].text),
				mostDepth)
		}
		p.named = p.named[:2]
	case len(list) > 1 && (list[0].word("never") || list[0].word("always")):
		r.kind = absent
		if list[0].word("always") {
			r.kind = always
		}
		r.regex, err = regexPattern(a, strings.TrimPrefix(strings.TrimSpace(text), list[0].text))
		return r, err
	default:
		return nil,
			errors.New(`it is none of "A before B", "every A followed by B [before C]", ` +
				`"never A after B", "A and B balanced [within N]", "never REGEX", "always REGEX"`)
	}
	for i, to := range []*int{&r.a, &r.b, &r.c}[:len(p.named)] {
		if *to, err = a.add(p.named[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

type ruleParser struct {
	names *pathNames
	rest  []token
	named []string
}

func (t token) word(text string) bool { return t.name && t.text == text }

// shape reports whether the words are these, with a name for each "_".
func (p *ruleParser) shape(words ...string) bool {
	p.named = nil
	if len(words) != len(p.rest) {
		return false
	}
	for i, w := range words {
		switch {
		case w == "_" && p.rest[i].name:
			p.named = append(p.named, p.rest[i].text)
		case !p.rest[i].word(w):
			return false
		}
	}
	return true
}

// automaton makes the automaton of a rule whose violations are hits, for all kinds but balanced.
func (r *rule) automaton(a *pathNames) (*automaton, error) {
	if r.regex == nil {
		x := classify(a)
		x.resolve = func(state, class uint32) (uint32, bool) { return r.step(state, x.mask[class]) }
		return x, nil
	}
	p, err := newPositions(r.regex)
	if err != nil {
		return nil, err
	}
	switch {
	case r.kind == absent && p.last.has(0):
		return nil, errors.New("it matches where nothing ran")
	case r.kind == absent:
		return newSubsets(a, p, anywhere), nil
	}
	return newOnly(a, p, r.regex.atomsOf()), nil
}

// step is that of the patterns with names. A path that is both A and B is read as A first in "A
// before B", which it fulfils, and as B of an earlier A, then as another A, in "every A followed by
// B"; in "never A after B" it violates what an earlier B has forbidden.
func (r *rule) step(state uint32, mask uint64) (next uint32, violated bool) {
	isA, isB := mask>>r.a&1 == 1, mask>>r.b&1 == 1
	isC := r.c != noAtom && mask>>r.c&1 == 1
	switch r.kind {
	case before: // 1: A ran
		if state == 0 && isA {
			state = 1
		}
		return state, state == 0 && isB
	case neverOf: // 1: B ran
		violated = state == 1 && isA
		if isB {
			state = 1
		}
		return state, violated
	default: // 1: a B is due
		if isB {
			state = 0
		}
		violated = state == 1 && isC
		if isC {
			state = 0
		}
		if isA {
			state = 1
		}
		return state, violated
	}
}

// restsOnGaps reports whether what runs unseen, in a gap, may keep the rule: it asks for what has
// run.
func (r *rule) restsOnGaps() bool {
	return r.kind == before || r.kind == followed || r.kind == always
}

// forgetting makes the automaton of such a rule that begins anew at each gap: its violations are
// some whatever ran there.
func (r *rule) forgetting(a *pathNames) (*automaton, error) {
	x, err := r.automaton(a)
	if err != nil {
		return nil, err
	}
	resolve, anew := x.resolve, uint32(1) // an A may have run, or what always allows no more
	if r.kind == followed {
		anew = 0 // the B may have run
	}
	x.resolve = func(state, class uint32) (uint32, bool) {
		if class == gapClass {
			return anew, false
		}
		return resolve(state, class)
	}
	return x, nil
}

// isDue reports whether a B is due where a thread ends in a state: before a C is not by then.
func (r *rule) isDue(state uint32) bool {
	return r.kind == followed && r.c == noAtom && state == 1
}

// atomsOf are the atoms that a pattern names, as a mask.
func (p *pattern) atomsOf() uint64 {
	var mask uint64
	if p.op == onePath && p.atom != anyPath {
		mask = 1 << p.atom
		for _, atom := range p.nor {
			mask |= 1 << atom
		}
	}
	for _, part := range p.of {
		mask |= part.atomsOf()
	}
	return mask
}

// without is the pattern in which the paths of some atoms, a bit each, need not run.
func (p *pattern) without(atoms uint64) *pattern {
	r := *p
	r.of = nil
	for _, part := range p.of {
		r.of = append(r.of, part.without(atoms))
	}
	if p.op == onePath && p.atom != anyPath && !p.not && atoms>>p.atom&1 == 1 {
		return &pattern{op: repetition, of: []*pattern{&r}, most: 1}
	}
	return &r
}

// newOnly makes the automaton that hits where the paths that a pattern names, taken alone, are no
// beginning of what it matches any more. It hits once: then it reads no more.
func newOnly(a *pathNames, p *positions, named uint64) *automaton {
	x := &subsets{automaton: classify(a), positions: p, reading: here,
		number: make(map[string]uint32)}
	begin := newBitset()
	begin.set(0)
	x.automaton.start = x.intern(begin)
	dead := x.intern(newBitset()) // 1
	x.automaton.resolve = func(state, class uint32) (uint32, bool) {
		if x.automaton.mask[class]&named == 0 {
			return state, false
		}
		next, _ := x.step(state, class)
		return next, next == dead && state != dead
	}
	return x.automaton
}

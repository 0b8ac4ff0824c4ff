package wpp

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"

	"wpptrace/compress/sequitur"
)

// A Grammar is the whole program path of one thread as a DAG (Larus 1999, section 3.3): each rule
// is an interior node whose children are its body's symbols. Rule 0 is the start rule and derives
// the thread's stream of symbols. It is immutable.
//
// Counts are exact up to 2^64-1 and stay there (saturate) beyond.
//
// A large one may be of segments that stay in their file until they are needed. Then a method
// panics with a LoadError where one cannot be read any more (see Recover), and a body that was
// returned takes memory as long as it is referred to. Walk such a grammar segment by segment: see
// Segment.
type Grammar struct {
	segments *segments // nil: there are none, but what follows

	bodies  [][]uint32
	order   []int
	lengths []uint64
	uses    []uint64
}

// IsRule reports whether a symbol of a body names a rule, not a terminal.
func IsRule(v uint32) bool { return sequitur.IsRule(v) }

// RuleOf returns the number of the rule that a symbol of a body names.
func RuleOf(v uint32) int { return sequitur.RuleOf(v) }

// RuleSymbol returns the symbol that names a rule in a body.
func RuleSymbol(rule int) uint32 { return sequitur.RuleSymbol(rule) }

// FromSequitur returns an immutable copy of a grammar that may go on growing. It takes time and
// memory in proportion to the grammar.
func FromSequitur(g *sequitur.Grammar) *Grammar {
	grammar, err := NewGrammar(g.Rules())
	if err != nil {
		panic("wpp: grammar made by sequitur: " + err.Error())
	}
	return grammar
}

// NewGrammar makes a grammar of rule bodies, start rule first, which it keeps and which must not
// change any more. It refuses a grammar without a start rule, with a rule that does not exist, is
// empty (but for the start rule), is never used, or derives itself.
func NewGrammar(bodies [][]uint32) (*Grammar, error) {
	if len(bodies) == 0 {
		return nil, fmt.Errorf("grammar has no start rule")
	}
	g := &Grammar{bodies: bodies}
	references, err := countReferences(bodies)
	if err != nil {
		return nil, err
	}
	if err := g.sort(references); err != nil {
		return nil, err
	}
	g.measure()
	return g, nil
}

func countReferences(bodies [][]uint32) ([]uint32, error) {
	references := make([]uint32, len(bodies))
	for r, body := range bodies {
		if r > 0 && len(body) == 0 {
			return nil, fmt.Errorf("rule %d of %d is empty", r, len(bodies))
		}
		for _, v := range body {
			if !IsRule(v) {
				continue
			}
			if RuleOf(v) >= len(bodies) {
				return nil, fmt.Errorf("rule %d refers to rule %d of %d", r, RuleOf(v), len(bodies))
			}
			references[RuleOf(v)]++
		}
	}
	return references, nil
}

// sort finds a topological order from the start rule down; what the order does not reach is unused
// or cyclic.
func (g *Grammar) sort(references []uint32) error {
	if references[0] > 0 {
		return fmt.Errorf("the start rule is used by a rule")
	}
	g.order = append(make([]int, 0, len(g.bodies)), 0)
	for i := 0; i < len(g.order); i++ {
		for _, v := range g.bodies[g.order[i]] {
			if !IsRule(v) {
				continue
			}
			r := RuleOf(v)
			if references[r]--; references[r] == 0 {
				g.order = append(g.order, r)
			}
		}
	}
	if len(g.order) < len(g.bodies) {
		return fmt.Errorf("%d of %d rules are unused or derive themselves",
			len(g.bodies)-len(g.order), len(g.bodies))
	}
	return nil
}

func (g *Grammar) measure() {
	g.lengths = make([]uint64, len(g.bodies))
	for i := len(g.order) - 1; i >= 0; i-- {
		var n uint64
		for _, v := range g.bodies[g.order[i]] {
			if IsRule(v) {
				n = addSaturating(n, g.lengths[RuleOf(v)])
			} else {
				n = addSaturating(n, 1)
			}
		}
		g.lengths[g.order[i]] = n
	}
	g.uses = make([]uint64, len(g.bodies))
	g.uses[0] = 1
	for _, r := range g.order {
		for _, v := range g.bodies[r] {
			if IsRule(v) {
				g.uses[RuleOf(v)] = addSaturating(g.uses[RuleOf(v)], g.uses[r])
			}
		}
	}
}

func addSaturating(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// Rules returns the number of rules; they are numbered from 0, the start rule.
func (g *Grammar) Rules() int {
	if g.segments != nil {
		return g.segments.first[len(g.segments.list)]
	}
	return len(g.bodies)
}

// NumSegments returns how many segments the grammar is of; 0: it is in one piece.
func (g *Grammar) NumSegments() int {
	if g.segments == nil {
		return 0
	}
	return len(g.segments.list)
}

// Segment returns a segment, of which there are NumSegments, as a grammar of its own, decoded for
// the caller alone: rule r of it is rule first + r of the whole. Segments follow one another in the
// stream. It panics with a LoadError where the segment cannot be read any more.
func (g *Grammar) Segment(i int) (segment *Grammar, first int) {
	if i < 0 || i >= g.NumSegments() {
		panic(fmt.Sprintf("wpp: segment %d of %d", i, g.NumSegments()))
	}
	segment, err := g.segments.list[i].Load()
	if err != nil {
		panic(g.segments.list[i].loadError(err))
	}
	return segment, g.segments.first[i]
}

// Segments returns the segments that the grammar is of, in their order: none where it is in one
// piece.
func (g *Grammar) Segments() []*Segment {
	if g.segments == nil {
		return nil
	}
	return slices.Clone(g.segments.list)
}

// First returns a grammar that derives the first symbols that g derives, so many: of segments, what
// is behind these is not read. It is for who needs no others, and says of its rules how often they
// occur there, but how many symbols a segment has in all.
func (g *Grammar) First(symbols uint64) *Grammar {
	if g.segments == nil {
		return g
	}
	var list []*Segment
	for _, s := range g.segments.list {
		if symbols == 0 {
			break
		}
		n := min(symbols, s.size.Length)
		if n < s.size.Length {
			part := *s
			part.first, s = n, &part
		}
		list = append(list, s)
		symbols -= n
	}
	return Join(list)
}

// Body returns the right-hand side of a rule. It must not be changed.
func (g *Grammar) Body(rule int) []uint32 {
	switch {
	case g.segments == nil:
		return g.bodies[rule]
	case rule == 0:
		return g.segments.start
	}
	l := g.segments.of(rule)
	return l.grammar.bodies[rule-l.first]
}

// Bodies returns the right-hand sides of all rules, by their numbers, of a grammar in one piece.
// They must not be changed.
func (g *Grammar) Bodies() [][]uint32 { return g.bodies }

// Order returns the rules in a topological order: each rule before those that it uses, the start
// rule first. Walk it backwards to compute from the leaves up. It must not be changed.
func (g *Grammar) Order() []int {
	if g.segments != nil {
		return g.segments.order()
	}
	return g.order
}

// Length returns the number of terminals that a rule derives.
func (g *Grammar) Length(rule int) uint64 {
	switch {
	case g.segments == nil:
		return g.lengths[rule]
	case rule == 0:
		return g.segments.length
	}
	if i, ok := slices.BinarySearch(g.segments.first, rule); ok { // without decoding it
		return g.segments.list[i].size.Length
	}
	l := g.segments.of(rule)
	return l.grammar.lengths[rule-l.first]
}

// Uses returns how often a rule occurs in the derivation of the stream: the frequency of its node
// (Larus 1999, section 3.3).
func (g *Grammar) Uses(rule int) uint64 {
	switch {
	case g.segments == nil:
		return g.uses[rule]
	case rule == 0:
		return 1
	}
	l := g.segments.of(rule)
	return l.grammar.uses[rule-l.first]
}

// BodySymbols returns the number of right-hand-side symbols of all rules.
func (g *Grammar) BodySymbols() int {
	if g.segments != nil {
		return g.segments.symbols()
	}
	n := 0
	for _, body := range g.bodies {
		n += len(body)
	}
	return n
}

// CheckTerminals reports a terminal that is not below a number.
func (g *Grammar) CheckTerminals(terminals int) error {
	for r, body := range g.bodies {
		for _, v := range body {
			if !IsRule(v) && int64(v) >= int64(terminals) {
				return fmt.Errorf("rule %d: symbol %d of %d", r, v, terminals)
			}
		}
	}
	return nil
}

// Expand iterates over the terminals that a rule derives, in order; Expand(0) is the whole stream.
// It keeps a stack as deep as the grammar and costs constant time a terminal.
func (g *Grammar) Expand(rule int) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		stack := [][]uint32{g.Body(rule)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(*top) == 0 {
				stack = stack[:len(stack)-1]
				continue
			}
			v := (*top)[0]
			*top = (*top)[1:]
			switch {
			case IsRule(v):
				stack = append(stack, g.Body(RuleOf(v)))
			case !yield(v):
				return
			}
		}
	}
}

package forest

import (
	"slices"

	"wpptrace/compress/wpp"
)

// Apart says which terminals of grammars are told apart by the one that comes directly before them:
// where some come, the forest has another terminal. Nil: none are.
type Apart struct {
	// by terminal of the grammars: it is another one behind some
	Varies []bool
	// In is the terminal for one of the grammars' behind another. It has no state.
	In func(before, terminal uint32) uint32
}

// nothing comes before a thread's first terminal.
const nothing uint32 = endOfRule

// behind is a grammar as it is laid out where a terminal came before it, and its last terminal.
func (a *Apart) behind(before uint32, g *wpp.Grammar) (rules, uint32) {
	if a == nil {
		return g, nothing
	}
	x := newInContext(g, a, before)
	return x, x.ends[0][1]
}

// inContext is a grammar in which terminals are told apart. Where one comes behind another is known
// at the lowest rule that derives both, and that is where its terminal stands: the interior node
// that a cost that depends on what ran before is kept at (Larus 1999, section 3.3). So a rule that
// begins with a terminal that varies derives all but it, and what uses the rule has it before the
// rule. That makes the right-hand sides at most twice as many, and what queries sum up of rules and
// symbols stays exact.
type inContext struct {
	*wpp.Grammar
	apart  *Apart
	before uint32      // what came before the grammar
	ends   [][2]uint32 // rule -> the first and the last terminal of what it derives
	body   []uint32
}

// newInContext takes time linear in the right-hand sides.
func newInContext(g *wpp.Grammar, a *Apart, before uint32) *inContext {
	x := &inContext{Grammar: g, apart: a, before: before, ends: make([][2]uint32, g.Rules())}
	for _, r := range slices.Backward(g.Order()) {
		if body := g.Body(r); len(body) > 0 {
			x.ends[r] = [2]uint32{x.endsOf(body[0])[0], x.endsOf(body[len(body)-1])[1]}
		}
	}
	return x
}

func (x *inContext) endsOf(v uint32) [2]uint32 {
	if wpp.IsRule(v) {
		return x.ends[wpp.RuleOf(v)]
	}
	return [2]uint32{v, v}
}

// Body is that of a rule, until it is called again.
func (x *inContext) Body(rule int) []uint32 {
	x.body = x.body[:0]
	before := x.before
	for i, v := range x.Grammar.Body(rule) {
		ends := x.endsOf(v)
		varies := x.apart.Varies[ends[0]]
		if varies && (i > 0 || rule == 0) {
			x.body = append(x.body, x.apart.In(before, ends[0]))
		}
		if !varies || wpp.IsRule(v) && x.Grammar.Length(wpp.RuleOf(v)) > 1 {
			x.body = append(x.body, v)
		}
		before = ends[1]
	}
	return x.body
}

// Length is that of what a rule derives.
func (x *inContext) Length(rule int) uint64 {
	n := x.Grammar.Length(rule)
	if rule > 0 && n < 1<<64-1 && x.apart.Varies[x.ends[rule][0]] {
		n--
	}
	return n
}

package rules

import (
	"math"
	"sort"

	"wpptrace/compress/wpp"
)

// A balance is what reading some symbols does to a depth: it rises at each A, falls at each B. Sums
// stop at 2^62, far beyond any limit.
type balance struct {
	sum    int64
	lowest int64 // of all beginnings, the empty one too
	rise   int64 // from any beginning up to a later one, at most
	top    int64 // highest of all beginnings
}

func (x balance) then(y balance) balance {
	return balance{
		sum:    addSigned(x.sum, y.sum),
		lowest: min(x.lowest, addSigned(x.sum, y.lowest)),
		top:    max(x.top, addSigned(x.sum, y.top)),
		rise:   max(x.rise, y.rise, addSigned(addSigned(x.sum, y.top), -x.lowest)),
	}
}

func addSigned(a, b int64) int64 {
	const most = math.MaxInt64 >> 1
	return max(-most, min(most, a+b))
}

// Balances are those of the rules of a grammar: of all, or of the start rule's symbols and of one
// segment at a time. They belong to one goroutine.
type balances struct {
	rule    *rule
	atoms   *pathNames
	grammar *wpp.Grammar
	starts  map[uint32]balance // symbol of the start rule, where these are segments -> its balance
	first   int                // of the rules in list
	list    []balance
}

// newBalances takes time linear in the right-hand sides, and 32 bytes a rule, of one segment where
// there are any.
func newBalances(r *rule, a *pathNames, g *wpp.Grammar) *balances {
	x := &balances{rule: r, atoms: a, grammar: g, starts: map[uint32]balance{}}
	if g.NumSegments() == 0 {
		x.fill(g, 0)
	}
	for i := range g.NumSegments() {
		x.load(i)
		x.starts[wpp.RuleSymbol(x.first)] = x.list[0]
	}
	return x
}

// load makes the balances of a segment those that are known.
func (x *balances) load(i int) { x.fill(x.grammar.Segment(i)) }

// fill computes the balances of a grammar whose rules are numbered from one on in the whole.
func (x *balances) fill(g *wpp.Grammar, first int) {
	x.first, x.list = first, make([]balance, g.Rules())
	order := g.Order()
	for i := len(order) - 1; i >= 0; i-- {
		var sum balance
		for _, sym := range g.Body(order[i]) {
			if wpp.IsRule(sym) {
				sum = sum.then(x.list[wpp.RuleOf(sym)])
			} else {
				sum = sum.then(x.terminal(sym))
			}
		}
		x.list[order[i]] = sum
	}
}

// whole is the balance of the stream.
func (x *balances) whole() balance {
	if x.grammar.NumSegments() == 0 {
		return x.list[0]
	}
	var sum balance
	for _, sym := range x.grammar.Body(0) {
		sum = sum.then(x.of(sym))
	}
	return sum
}

// of is the balance of a symbol. It reads the symbol's segment, if that is not the one read last.
func (x *balances) of(sym uint32) balance {
	if !wpp.IsRule(sym) {
		return x.terminal(sym)
	}
	if start, ok := x.starts[sym]; ok {
		return start
	}
	rule := wpp.RuleOf(sym)
	if rule < x.first || rule >= x.first+len(x.list) {
		x.load(x.segmentOf(rule))
	}
	return x.list[rule-x.first]
}

// segmentOf is the segment that a rule is of.
func (x *balances) segmentOf(rule int) int {
	starts := x.grammar.Body(0)
	return sort.Search(len(starts), func(i int) bool { return wpp.RuleOf(starts[i]) > rule }) - 1
}

func (x *balances) terminal(sym uint32) balance {
	switch {
	case x.atoms.mask[sym]>>x.rule.a&1 == 1:
		return balance{sum: 1, rise: 1, top: 1}
	case x.atoms.mask[sym]>>x.rule.b&1 == 1:
		return balance{sum: -1, lowest: -1}
	}
	return balance{}
}

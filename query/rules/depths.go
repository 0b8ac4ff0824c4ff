package rules

import (
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/stream"
)

// Positions by the depth of a balanced rule there are found on the way down from the start rule.
// Each takes time in proportion to the bodies on that way.

// firstBelow is the first B without its A: where the depth falls below 0 first.
func (x *balances) firstBelow() uint64 {
	return x.firstWith(func(before, part balance) bool { return before.then(part).lowest < 0 })
}

// firstAbove is the first A that is too deep.
func (x *balances) firstAbove() uint64 {
	return x.firstWith(func(before,
		part balance) bool {
		return before.then(part).rise > int64(x.rule.limit)
	})
}

// firstWith finds the first symbol with which what was read up to there has a property, which it
// keeps then.
func (x *balances) firstWith(has func(before, part balance) bool) (position uint64) {
	var before balance
	for rule, at := 0, 0; ; {
		sym := x.grammar.Body(rule)[at]
		part := x.of(sym)
		switch {
		case !has(before, part):
			before = before.then(part)
			position = saturating.Add(position, stream.Width(x.grammar, sym))
			at++
		case wpp.IsRule(sym):
			rule, at = wpp.RuleOf(sym), 0
		default:
			return position
		}
	}
}

// firstOpen is the first A without its B: what stands behind the last place where the depth is as
// low as it ever gets.
func (x *balances) firstOpen() (position uint64) {
	lowest, depth, rule := x.whole().lowest, int64(0), 0
	for {
		// The last symbol at whose end it is so, or at whose beginning or within which.
		into, at := -1, position
		inDepth, inPosition := depth, position
		for i, sym := range x.grammar.Body(rule) {
			part := x.of(sym)
			end := addSigned(depth, part.sum)
			switch {
			case end == lowest:
				into, at = -1, saturating.Add(position, stream.Width(x.grammar, sym))
			case addSigned(depth, part.lowest) == lowest && !wpp.IsRule(sym):
				into, at = -1, position
			case addSigned(depth, part.lowest) == lowest:
				into, inDepth, inPosition = i, depth, position
			}
			depth, position = end, saturating.Add(position, stream.Width(x.grammar, sym))
		}
		if into < 0 {
			return at
		}
		rule, depth, position = wpp.RuleOf(x.grammar.Body(rule)[into]), inDepth, inPosition
	}
}

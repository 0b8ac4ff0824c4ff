package repair

import "wpptrace/compress/sequitur"

// Compact makes a small grammar of the bodies of a grammar's rules, the start rule's first, with
// symbols as sequitur has them: it derives the same. Every rule of the input but the start rule
// must be used, have a body, and not derive itself. What is repeated is found within and across
// bodies, but not inside a rule that they name; so a body of all that the start rule derives gives
// the smallest result.
func Compact(bodies [][]uint32) [][]uint32 {
	return prune(replacePairs(bodies))
}

// replacePairs replaces pairs by rules until none occurs twice.
func replacePairs(bodies [][]uint32) [][]uint32 {
	symbols := 0
	for _, body := range bodies {
		symbols += len(body)
	}
	p := newPairs(symbols)
	first := make([]uint32, len(bodies))
	for r, body := range bodies {
		first[r] = p.addSequence(body)
	}
	p.file()
	result := make([][]uint32, len(bodies))
	for n, ok := p.take(); ok; n, ok = p.take() {
		rule := sequitur.RuleSymbol(len(result))
		result = append(result, []uint32{p.pairs[n].left, p.pairs[n].right})
		p.replace(n, rule)
	}
	for r := range bodies {
		result[r] = p.sequence(nil, first[r])
	}
	return result
}

// leastSaved is how many symbols a rule must save to pay: that it begins and ends somewhere must be
// written, too.
const leastSaved = 3

// A pruner takes rules out: what names them gets their bodies instead.
type pruner struct {
	bodies [][]uint32
	uses   []int
	out    []bool
}

func prune(bodies [][]uint32) [][]uint32 {
	p := pruner{bodies, make([]int, len(bodies)), make([]bool, len(bodies))}
	for _, body := range bodies {
		for _, v := range body {
			if sequitur.IsRule(v) {
				p.uses[sequitur.RuleOf(v)]++
			}
		}
	}
	for _, r := range bottomUp(bodies, p.uses) {
		p.inline(r)
		if r != 0 && (p.uses[r]-1)*(len(p.bodies[r])-1)-1 < leastSaved {
			p.takeOut(r)
		}
	}
	return p.kept()
}

// bottomUp returns the rules in an order in which each comes after those that it uses. uses is how
// often each is.
func bottomUp(bodies [][]uint32, uses []int) []int {
	left := append([]int(nil), uses...)
	order := make([]int, len(bodies))
	at, next := len(order)-1, len(order)-2
	for order[at] = 0; at > next && at >= 0; at-- {
		for _, v := range bodies[order[at]] {
			if !sequitur.IsRule(v) {
				continue
			}
			r := sequitur.RuleOf(v)
			if left[r]--; left[r] == 0 {
				order[next] = r
				next--
			}
		}
	}
	return order
}

// inline puts into a body the bodies of the rules in it that are out.
func (p *pruner) inline(r int) {
	longer := 0
	for _, v := range p.bodies[r] {
		if p.isOut(v) {
			longer += len(p.bodies[sequitur.RuleOf(v)])
		}
	}
	if longer == 0 {
		return
	}
	body := make([]uint32, 0, len(p.bodies[r])+longer)
	for _, v := range p.bodies[r] {
		if p.isOut(v) {
			body = append(body, p.bodies[sequitur.RuleOf(v)]...)
		} else {
			body = append(body, v)
		}
	}
	p.bodies[r] = body
}

func (p *pruner) isOut(v uint32) bool { return sequitur.IsRule(v) && p.out[sequitur.RuleOf(v)] }

// takeOut takes a rule out, whose body will stand wherever it is used.
func (p *pruner) takeOut(r int) {
	p.out[r] = true
	for _, v := range p.bodies[r] {
		if sequitur.IsRule(v) {
			p.uses[sequitur.RuleOf(v)] += p.uses[r] - 1
		}
	}
}

// kept returns the bodies of the rules that are not out, numbered without gaps.
func (p *pruner) kept() [][]uint32 {
	var kept [][]uint32
	numbers := make([]int, len(p.bodies))
	for r, body := range p.bodies {
		if !p.out[r] {
			numbers[r] = len(kept)
			kept = append(kept, body)
		}
	}
	for _, body := range kept {
		for i, v := range body {
			if sequitur.IsRule(v) {
				body[i] = sequitur.RuleSymbol(numbers[sequitur.RuleOf(v)])
			}
		}
	}
	return kept
}

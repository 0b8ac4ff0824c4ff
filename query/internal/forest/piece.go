package forest

import (
	"slices"

	"wpptrace/compress/wpp"
)

// A piece is the grammars of one or more threads, or of a segment of one, laid side by side, with
// what is asked of them: how often each rule is derived, and where it is used. Rules are numbered
// through. The prefixes are extended as they are needed.
type piece struct {
	body    []uint32 // the right-hand sides, one after the other, each closed by endOfRule
	ruleOf  []uint32 // position in body -> its rule
	begin   []uint32 // rule -> position of its first symbol
	derived []uint64 // rule -> how often it is derived, in all threads together
	length  []uint64 // rule -> symbols in its expansion
	upwards []uint32 // the rules, each after those that it uses
	used    []uint32 // rule -> on how many right-hand sides it is
	uses    postings // rule -> the positions of its uses
	prefix  [][]uint32
	symbols int // terminals are below this

	isSegment bool // a segment of a thread: see Forest.pieces
	joins     bool // the segments of a thread
}

// endOfRule names a rule that no grammar is large enough to have.
const endOfRule = 1<<32 - 1

// newPiece lays out the grammars of threads. Time and memory are linear in their right-hand sides.
func newPiece(symbols int, grammars []rules) *piece {
	p := &piece{symbols: symbols}
	for _, g := range grammars {
		p.lay(g)
	}
	p.index()
	return p
}

// Rules are what a piece needs of a grammar. What Body returns is good until it is called again.
type rules interface {
	Rules() int
	Body(rule int) []uint32
	Order() []int
	Length(rule int) uint64
	Uses(rule int) uint64
	BodySymbols() int
}

// index prepares for walking from a place to those around it.
func (p *piece) index() {
	p.prefix = make([][]uint32, len(p.begin))
	for rule := range p.begin {
		for range len(p.rightSide(uint32(rule))) + 1 {
			p.ruleOf = append(p.ruleOf, uint32(rule))
		}
	}
	p.uses = newPostings(p.body, len(p.begin), func(v uint32) (uint32, bool) {
		return uint32(wpp.RuleOf(v)), v != endOfRule && wpp.IsRule(v)
	})
}

// rename gives the terminals other names, below a number of symbols.
func (p *piece) rename(to []uint32, symbols int) {
	for pos, v := range p.body {
		if !wpp.IsRule(v) {
			p.body[pos] = to[v]
		}
	}
	p.symbols = symbols
	clear(p.prefix)
}

func (p *piece) lay(g rules) {
	base := len(p.begin)
	p.body = slices.Grow(p.body, g.BodySymbols()+g.Rules())
	p.used = append(p.used, make([]uint32, g.Rules())...)
	for r := range g.Rules() {
		p.begin = append(p.begin, uint32(len(p.body)))
		p.derived = append(p.derived, g.Uses(r))
		p.length = append(p.length, g.Length(r))
		for _, v := range g.Body(r) {
			if wpp.IsRule(v) {
				v = wpp.RuleSymbol(base + wpp.RuleOf(v))
				p.used[wpp.RuleOf(v)]++
			}
			p.body = append(p.body, v)
		}
		p.body = append(p.body, endOfRule)
	}
	for _, r := range slices.Backward(g.Order()) {
		p.upwards = append(p.upwards, uint32(base+r))
	}
}

// rightSide is the body of a rule.
func (p *piece) rightSide(rule uint32) []uint32 {
	begin := p.begin[rule]
	end := uint32(len(p.body))
	if int(rule)+1 < len(p.begin) {
		end = p.begin[rule+1]
	}
	return p.body[begin : end-1]
}

// weight is how often the symbol at a position of body is derived.
func (p *piece) weight(pos uint32) uint64 { return p.derived[p.ruleOf[pos]] }

// width is the number of terminals that a symbol of a body expands to.
func (p *piece) width(v uint32) uint64 {
	if wpp.IsRule(v) {
		return p.length[wpp.RuleOf(v)]
	}
	return 1
}

// terminal is the terminal at an offset, which must be below width(v), of the expansion of a
// symbol. All that comes before it is expanded too and kept with the rule, so the cost is constant
// on average.
func (p *piece) terminal(v, offset uint32) uint32 {
	if !wpp.IsRule(v) {
		return v
	}
	r := uint32(wpp.RuleOf(v))
	if uint32(len(p.prefix[r])) <= offset {
		p.expand(r, max(4, 2*uint64(offset)))
	}
	return p.prefix[r][offset]
}

// expand makes prefix[rule] the first n terminals of the rule's expansion, or all of it where it is
// shorter.
func (p *piece) expand(rule uint32, n uint64) {
	n = min(n, p.length[rule])
	out := make([]uint32, 0, n)
	stack := []uint32{p.begin[rule]}
	for uint64(len(out)) < n {
		top := len(stack) - 1
		v := p.body[stack[top]]
		stack[top]++
		switch {
		case v == endOfRule:
			stack = stack[:top]
		case wpp.IsRule(v):
			stack = append(stack, p.begin[wpp.RuleOf(v)])
		default:
			out = append(out, v)
		}
	}
	p.prefix[rule] = out
}

// Postings lists positions by key: those of key k are at[first[k]:first[k+1]], in rising order.
type postings struct{ first, at []uint32 }

func (p postings) of(key uint32) []uint32 { return p.at[p.first[key]:p.first[key+1]] }

func newPostings(values []uint32, keys int, key func(v uint32) (k uint32, ok bool)) postings {
	first := make([]uint32, keys+1)
	for _, v := range values {
		if k, ok := key(v); ok {
			first[k+1]++
		}
	}
	for k := range keys {
		first[k+1] += first[k]
	}
	at := make([]uint32, first[keys])
	next := slices.Clone(first)
	for pos, v := range values {
		if k, ok := key(v); ok {
			at[next[k]] = uint32(pos)
			next[k]++
		}
	}
	return postings{first, at}
}

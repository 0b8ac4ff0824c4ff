// Package stream reads what a grammar derives from any position on, forward and backward, without
// expanding it. What it reads may be of segments that stay in their file: it panics with a
// *wpp.LoadError where one cannot be read any more, which the exported questions recover.
package stream

import (
	"iter"
	"sort"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A Cursor reads the stream of a grammar from any position, forward and backward, without expanding
// it: the tree of the derivation is walked, of which only the way down to the cursor is kept (as
// Bille et al. do, arXiv 1001.1565, but without a bound on that way). The cursor stands between two
// symbols. It belongs to one goroutine.
type Cursor struct {
	grammar  *wpp.Grammar
	ends     Ends
	position uint64
	// at is the symbol behind the cursor; of the rungs above, the one that the cursor is in
	way []rung
}

// New makes a cursor that stands before the first symbol. It takes time and memory in
// proportion to the start rule.
func New(g *wpp.Grammar) *Cursor {
	return &Cursor{grammar: g, way: []rung{{}}, ends: NewEnds(g)}
}

// Ends are the positions behind the start rule's symbols, each with what it derives:
// saturated. They find a position without reading that rule, which is often most of a grammar.
type Ends []uint64

// NewEnds takes time and memory in proportion to the start rule.
func NewEnds(g *wpp.Grammar) Ends {
	ends, end := make(Ends, 0, len(g.Body(0))), uint64(0)
	for _, sym := range g.Body(0) {
		end = saturating.Add(end, Width(g, sym))
		ends = append(ends, end)
	}
	return ends
}

// Find returns the start rule's symbol that derives what stands at a position of the stream, and
// the position in that.
func (e Ends) Find(position uint64) (at int, within uint64) {
	at = sort.Search(len(e), func(i int) bool { return e[i] > position })
	if at > 0 {
		position -= e[at-1]
	}
	return at, position
}

// Width is how many symbols of the stream a symbol of a body derives.
func Width(g *wpp.Grammar, sym uint32) uint64 {
	if wpp.IsRule(sym) {
		return g.Length(wpp.RuleOf(sym))
	}
	return 1
}

// Position returns how many symbols are before the cursor.
func (c *Cursor) Position() uint64 { return c.position }

// Seek puts the cursor before the symbol at a position, or behind the last where the stream has no
// more than that. It takes time in proportion to the bodies of the rules on the way down but the
// start rule's, of whose length it takes the logarithm. Of a stream of 2^64-1 symbols and more it
// finds the first 2^64-1.
func (c *Cursor) Seek(position uint64) {
	if position >= c.grammar.Length(0) {
		c.position = c.grammar.Length(0)
		c.way = append(c.way[:0], rung{0, len(c.ends)})
		return
	}
	c.position = position
	at, position := c.ends.Find(position)
	c.way = append(c.way[:0], rung{0, at})
	for {
		top := c.way[len(c.way)-1]
		sym := c.grammar.Body(top.rule)[top.at]
		if !wpp.IsRule(sym) {
			return
		}
		rule := wpp.RuleOf(sym)
		i := 0
		for body := c.grammar.Body(rule); Width(c.grammar, body[i]) <= position; i++ {
			position -= Width(c.grammar, body[i])
		}
		c.way = append(c.way, rung{rule, i})
	}
}

// Next returns the symbol behind the cursor and moves behind it; false at the end. Its time is
// constant on average over a stream.
func (c *Cursor) Next() (sym uint32, ok bool) {
	for {
		top := &c.way[len(c.way)-1]
		body := c.grammar.Body(top.rule)
		switch {
		case top.at == len(body) && len(c.way) == 1:
			return 0, false
		case top.at == len(body):
			c.way = c.way[:len(c.way)-1]
			c.way[len(c.way)-1].at++
		case wpp.IsRule(body[top.at]):
			c.way = append(c.way, rung{wpp.RuleOf(body[top.at]), 0})
		default:
			top.at++
			c.position = saturating.Add(c.position, 1)
			return body[top.at-1], true
		}
	}
}

// Previous returns the symbol before the cursor and moves before it; false at the beginning. Its
// time is constant on average over a stream.
func (c *Cursor) Previous() (sym uint32, ok bool) {
	for {
		top := &c.way[len(c.way)-1]
		body := c.grammar.Body(top.rule)
		switch {
		case top.at == 0 && len(c.way) == 1:
			return 0, false
		case top.at == 0:
			c.way = c.way[:len(c.way)-1]
		case wpp.IsRule(body[top.at-1]):
			top.at--
			rule := wpp.RuleOf(body[top.at])
			c.way = append(c.way, rung{rule, len(c.grammar.Body(rule))})
		default:
			top.at--
			c.position--
			return body[top.at], true
		}
	}
}

// Range returns the symbols at the positions from one on and before another, backward where
// asked, as an iterator: time is that of Seek, and then constant on average for a symbol. What is
// behind the end of the stream is left out.
func Range(g *wpp.Grammar, from, to uint64, backward bool) iter.Seq[uint32] {
	to = min(to, g.Length(0))
	return func(yield func(uint32) bool) {
		c := New(g)
		step := c.Next
		if backward {
			c.Seek(to)
			step = c.Previous
		} else {
			c.Seek(from)
		}
		for range to - min(from, to) {
			if sym, ok := step(); !ok || !yield(sym) {
				return
			}
		}
	}
}

// A rung is a symbol of a rule's body on the way from the start rule down to a terminal.
type rung struct{ rule, at int }

package query

import "wpptrace/compress/wpp"

// coverage returns for each of the patterns the cost of what ran within an occurrence of it or of one before it, each execution
// of a path counted once.
//
// An occurrence that crosses into a rule from outside covers at most margin symbols at an edge of its expansion, where margin is one
// less than the longest pattern. So, from the rules that use no others upwards, each rule is matched at its seams, what is
// more than margin away from both of its edges is settled once and for all its derivations, and only the edges are kept for the
// rules above. Time and memory are in proportion to the right-hand sides times the longest pattern.
func coverage(f *forest, patterns [][]uint32, cost []uint64) []uint64 {
	if len(patterns) == 0 {
		return nil
	}
	c := &cover{
		forest:  f,
		cost:    cost,
		matcher: newMatcher(patterns, f.symbols),
		edges:   make([][]cell, len(f.begin)),
		unread:  make([]int, len(f.begin)),
		settled: make([]uint64, len(patterns)),
	}
	for _, p := range patterns {
		c.margin = max(c.margin, len(p)-1)
	}
	for _, r := range f.upwards {
		c.scan(r)
	}
	for i := 1; i < len(c.settled); i++ {
		c.settled[i] = addSaturating(c.settled[i], c.settled[i-1])
	}
	return c.settled
}

type cover struct {
	*forest
	*matcher
	cost    []uint64
	margin  int
	edges   [][]cell // rule -> its whole expansion, or its first and last margin symbols where it has more than both
	unread  []int    // rule -> uses of its edges yet to come
	settled []uint64 // rank -> cost of what the pattern covers and no earlier one
	line    []cell   // of the rule being scanned: its first margin symbols, then those not settled yet
}

// A cell is an execution of a symbol and the first of the patterns that cover it.
type cell struct{ symbol, rank uint32 }

// isWide reports whether the middle of a rule's expansion was left out of its edges.
func (c *cover) isWide(rule uint32) bool { return c.length[rule] > 2*uint64(c.margin) }

func (c *cover) scan(rule uint32) {
	c.line = c.line[:0]
	state := uint32(0)
	for _, v := range c.rightSide(rule) {
		if !wpp.IsRule(v) {
			state = c.push(state, cell{v, noPattern})
		} else if child := uint32(wpp.RuleOf(v)); c.isWide(child) {
			state = c.pushAll(state, c.edges[child][:c.margin])
			c.settle(rule, len(c.line))
			state = c.pushAll(0, c.edges[child][c.margin:])
			c.release(child)
		} else {
			state = c.pushAll(state, c.edges[child])
			c.release(child)
		}
		if len(c.line) > 4*c.margin+1024 {
			c.settle(rule, len(c.line)-c.margin)
		}
	}
	c.keepEdges(rule)
}

func (c *cover) pushAll(state uint32, cells []cell) uint32 {
	for _, x := range cells {
		state = c.push(state, x)
	}
	return state
}

// push adds a cell to the line and marks all that the patterns which end there cover.
func (c *cover) push(state uint32, x cell) uint32 {
	c.line = append(c.line, x)
	state = c.next(state, x.symbol)
	for m := c.match[state]; m != 0; m = c.match[c.fail[m]] {
		rank := c.rank[m]
		for i := len(c.line) - int(c.depth[m]); i < len(c.line); i++ {
			c.line[i].rank = min(c.line[i].rank, rank)
		}
	}
	return state
}

// settle accounts for the line's cells up to end, but for the first margin ones, and drops them.
func (c *cover) settle(rule uint32, end int) {
	begin := min(c.margin, end)
	if len(c.uses.of(rule)) == 0 {
		begin = 0 // nothing is above a start rule that could cover its edges
	}
	for _, x := range c.line[begin:end] {
		if x.rank != noPattern {
			c.settled[x.rank] = addSaturating(c.settled[x.rank], mulSaturating(c.derived[rule], c.cost[x.symbol]))
		}
	}
	c.line = append(c.line[:begin], c.line[end:]...)
}

func (c *cover) keepEdges(rule uint32) {
	c.unread[rule] = len(c.uses.of(rule))
	switch {
	case c.unread[rule] == 0:
		c.settle(rule, len(c.line))
		return
	case c.isWide(rule):
		c.settle(rule, len(c.line)-c.margin)
	}
	c.edges[rule] = append([]cell(nil), c.line...)
}

func (c *cover) release(rule uint32) {
	if c.unread[rule]--; c.unread[rule] == 0 {
		c.edges[rule] = nil
	}
}

package query

// coverage returns for each of the patterns the cost of what ran within an occurrence of it or of one before it, each execution
// of a path counted once. Time and memory are in proportion to the right-hand sides times the longest pattern; time also to the
// lengths of the occurrences found there.
func coverage(f *forest, patterns [][]uint32, cost []uint64) []uint64 {
	if len(patterns) == 0 {
		return nil
	}
	longest := 0
	for _, p := range patterns {
		longest = max(longest, len(p))
	}
	c := &cover{matcher: newMatcher(patterns, f.symbols), derived: f.derived, cost: cost, total: make([]uint64, len(patterns))}
	readSeams(f, longest-1, c)
	for i := 1; i < len(c.total); i++ {
		c.total[i] = addSaturating(c.total[i], c.total[i-1])
	}
	return c.total
}

// A cover ranks each cell by the first of the patterns that cover it.
type cover struct {
	*matcher
	state   uint32
	derived []uint64
	cost    []uint64
	total   []uint64 // rank -> cost of what this pattern covers and no earlier one
}

func (c *cover) begin() { c.state = 0 }

func (c *cover) push(line []cell) {
	c.state = c.next(c.state, line[len(line)-1].symbol)
	for m := c.match[c.state]; m != 0; m = c.match[c.fail[m]] {
		for i := len(line) - int(c.depth[m]); i < len(line); i++ {
			line[i].rank = min(line[i].rank, c.rank[m])
		}
	}
}

func (c *cover) settle(rule uint32, cells []cell) {
	for _, x := range cells {
		if x.rank != noPattern {
			c.total[x.rank] = addSaturating(c.total[x.rank], mulSaturating(c.derived[rule], c.cost[x.symbol]))
		}
	}
}

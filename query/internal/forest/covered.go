package forest

import (
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/matcher"
)

// Covered returns for each of the patterns, which are not empty, the cost, by terminal, of what ran
// within an occurrence of it or of one before it, each execution of a terminal counted once. Time
// and memory are in proportion to the right-hand sides times the longest pattern; time also to the
// lengths of the occurrences found there.
func (f *Forest) Covered(patterns [][]uint32, cost []uint64) []uint64 {
	if len(patterns) == 0 {
		return nil
	}
	c := &cover{matcher: matcher.New(patterns, f.symbols), cost: cost,
		total: make([]uint64, len(patterns))}
	f.Read(longest(patterns)-1, c)
	for i := 1; i < len(c.total); i++ {
		c.total[i] = saturating.Add(c.total[i], c.total[i-1])
	}
	return c.total
}

// A cover ranks each terminal by the first of the patterns that cover it.
type cover struct {
	matcher *matcher.Matcher
	state   uint32
	cost    []uint64
	total   []uint64 // rank -> cost of what this pattern covers and no earlier one
}

func (c *cover) Begin(uint64) { c.state = 0 }

// Push ranks the terminals that a match covers by the best of the matches that cover them: the
// longest first, which reach farthest back, and of the shorter ones those that are better than all
// longer ones.
func (c *cover) Push(line []Terminal, inside int) {
	c.state = c.matcher.Next(c.state, line[len(line)-1].Symbol)
	best, from := matcher.None, len(line)
	for m := c.matcher.Longest(c.state); m != 0 &&
		c.matcher.Length(m) > inside; m = c.matcher.Shorter(m) {
		if rank := c.matcher.Rank(m); rank < best {
			begin := len(line) - c.matcher.Length(m)
			lower(line[min(from, begin):begin], best)
			best, from = rank, begin
		}
	}
	lower(line[from:], best)
}

func lower(terminals []Terminal, rank uint32) {
	for i := range terminals {
		terminals[i].rank = min(terminals[i].rank, rank)
	}
}

func (c *cover) settle(weight uint64, terminals []Terminal) {
	for _, x := range terminals {
		if x.rank != matcher.None {
			c.total[x.rank] = saturating.Add(c.total[x.rank],
				saturating.Mul(weight, c.cost[x.Symbol]))
		}
	}
}

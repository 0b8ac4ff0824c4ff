package query

import (
	"slices"

	"wpptrace/internal/saturating"
)

// countAll returns how often each of the patterns, which are not empty, occurs. It takes time and
// memory in proportion to the right-hand sides times the longest pattern, much less where patterns
// are rare.
func countAll(f *forests, patterns [][]uint32) []uint64 {
	switch {
	case len(patterns) == 0:
		return nil
	case f.whole != nil:
		return newTrieCounter(f.whole, patterns).run()
	}
	longest := 0
	for _, p := range patterns {
		longest = max(longest, len(p))
	}
	c := &counter{matcher: newMatcher(patterns, f.symbols), total: make([]uint64, len(patterns))}
	readBoundaries(f, longest-1, c)
	counts := make([]uint64, len(patterns))
	for i, p := range patterns {
		state := uint32(0)
		for _, sym := range p {
			state = c.matcher.down(state, sym)
		}
		counts[i] = c.total[c.matcher.rank[state]]
	}
	return counts
}

// A counter counts each occurrence at the lowest rule that has all of it, where the forests are
// read one after the other.
type counter struct {
	matcher *matcher
	state   uint32
	weight  uint64
	total   []uint64
}

func (c *counter) begin(weight uint64) { c.state, c.weight = 0, weight }

func (c *counter) push(line []terminal, inside int) {
	c.state = c.matcher.next(c.state, line[len(line)-1].symbol)
	for m := c.matcher.match[c.state]; m != 0 &&
		int(c.matcher.depth[m]) > inside; m = c.matcher.match[c.matcher.fail[m]] {
		c.total[c.matcher.rank[m]] = saturating.Add(c.total[c.matcher.rank[m]], c.weight)
	}
}

func (c *counter) settle(uint64, []terminal) {}

// A trieCounter follows the occurrences of patterns in a forest from symbol to symbol, once for all
// that begin alike.
type trieCounter struct {
	walker   *walker
	patterns [][]uint32
	order    []int // of the patterns, sorted
	counts   []uint64
	groupOf  []uint32 // symbol -> the group among those being made, plus 1; all 0 between groups
}

// A group is patterns that begin alike, from one in order up to another, and the occurrences of
// that beginning.
type group struct {
	from, to int
	bundles  []bundle
}

func newTrieCounter(f *forest, patterns [][]uint32) *trieCounter {
	x := &trieCounter{walker: newWalker(f), patterns: patterns,
		counts: make([]uint64, len(patterns)), groupOf: make([]uint32, f.symbols)}
	for i := range patterns {
		x.order = append(x.order, i)
	}
	slices.SortFunc(x.order, func(a, b int) int { return slices.Compare(patterns[a], patterns[b]) })
	return x
}

// run keeps the occurrences of two lengths at a time.
func (x *trieCounter) run() []uint64 {
	all := group{to: len(x.order)}
	level := x.part(all, x.walker.singles(x.begins()), 0, nil)
	for length := 1; len(level) > 0; length++ {
		var next []group
		for i, g := range level {
			level[i].bundles = nil
			for ; g.from < g.to && len(x.pattern(g.from)) == length; g.from++ {
				x.counts[x.order[g.from]] = countOf(g.bundles)
			}
			if g.from < g.to && len(g.bundles) > 0 {
				next = x.part(g, x.walker.follow(g.bundles), length, next)
			}
		}
		level = next
	}
	return x.counts
}

func (x *trieCounter) pattern(i int) []uint32 { return x.patterns[x.order[i]] }

// begins reports of each symbol whether a pattern begins with it.
func (x *trieCounter) begins() []bool {
	begins := make([]bool, x.walker.forest.symbols)
	for _, p := range x.patterns {
		begins[p[0]] = true
	}
	return begins
}

// part appends to next the groups of a group, by the symbol at a place, with those of the steps
// that lead there.
func (x *trieCounter) part(g group, steps []step, at int, next []group) []group {
	first := len(next)
	for i := g.from; i < g.to; i++ {
		symbol := x.pattern(i)[at]
		if x.groupOf[symbol] == 0 {
			next = append(next, group{from: i})
			x.groupOf[symbol] = uint32(len(next))
		}
		next[x.groupOf[symbol]-1].to = i + 1
	}
	for _, st := range steps {
		if i := x.groupOf[st.symbol]; i > 0 {
			next[i-1].bundles = append(next[i-1].bundles, st.to)
		}
	}
	for _, made := range next[first:] {
		x.groupOf[x.pattern(made.from)[at]] = 0
	}
	return next
}

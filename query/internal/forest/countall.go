package forest

import (
	"slices"

	"wpptrace/internal/saturating"
	"wpptrace/query/internal/matcher"
)

// CountAll returns how often each of the patterns, which are not empty, occurs. It takes time and
// memory in proportion to the right-hand sides times the longest pattern, much less where patterns
// are rare.
func (f *Forest) CountAll(patterns [][]uint32) []uint64 {
	switch {
	case len(patterns) == 0:
		return nil
	case f.whole != nil:
		return newTrieCounter(f.Walker(), patterns).run()
	}
	c := &counter{matcher: matcher.New(patterns, f.symbols), total: make([]uint64, len(patterns))}
	f.Read(longest(patterns)-1, c)
	counts := make([]uint64, len(patterns))
	for i, p := range patterns {
		counts[i] = c.total[c.matcher.RankOf(p)]
	}
	return counts
}

func longest(patterns [][]uint32) (length int) {
	for _, p := range patterns {
		length = max(length, len(p))
	}
	return length
}

// A counter counts each occurrence at the lowest rule that has all of it, where the pieces are read
// one after the other.
type counter struct {
	matcher *matcher.Matcher
	state   uint32
	weight  uint64
	total   []uint64
}

func (c *counter) Begin(weight uint64) { c.state, c.weight = 0, weight }

func (c *counter) Push(line []Terminal, inside int) {
	c.state = c.matcher.Next(c.state, line[len(line)-1].Symbol)
	for m := c.matcher.Longest(c.state); m != 0 &&
		c.matcher.Length(m) > inside; m = c.matcher.Shorter(m) {
		rank := c.matcher.Rank(m)
		c.total[rank] = saturating.Add(c.total[rank], c.weight)
	}
}

// A trieCounter follows the occurrences of patterns in a piece from symbol to symbol, once for all
// that begin alike.
type trieCounter struct {
	walker   *Walker
	patterns [][]uint32
	order    []int // of the patterns, sorted
	counts   []uint64
	groupOf  []uint32 // symbol -> the group among those being made, plus 1; all 0 between groups
}

// A group is patterns that begin alike, from one in order up to another, and the occurrences of
// that beginning.
type group struct {
	from, to int
	bundles  []Bundle
}

func newTrieCounter(w *Walker, patterns [][]uint32) *trieCounter {
	x := &trieCounter{walker: w, patterns: patterns,
		counts: make([]uint64, len(patterns)), groupOf: make([]uint32, w.piece.symbols)}
	for i := range patterns {
		x.order = append(x.order, i)
	}
	slices.SortFunc(x.order, func(a, b int) int { return slices.Compare(patterns[a], patterns[b]) })
	return x
}

// run keeps the occurrences of two lengths at a time.
func (x *trieCounter) run() []uint64 {
	all := group{to: len(x.order)}
	level := x.part(all, x.walker.Singles(x.begins()), 0, nil)
	for length := 1; len(level) > 0; length++ {
		var next []group
		for i, g := range level {
			level[i].bundles = nil
			for ; g.from < g.to && len(x.pattern(g.from)) == length; g.from++ {
				x.counts[x.order[g.from]] = countOf(g.bundles)
			}
			if g.from < g.to && len(g.bundles) > 0 {
				next = x.part(g, x.walker.Follow(g.bundles), length, next)
			}
		}
		level = next
	}
	return x.counts
}

func (x *trieCounter) pattern(i int) []uint32 { return x.patterns[x.order[i]] }

// begins reports of each symbol whether a pattern begins with it.
func (x *trieCounter) begins() []bool {
	begins := make([]bool, x.walker.piece.symbols)
	for _, p := range x.patterns {
		begins[p[0]] = true
	}
	return begins
}

// part appends to next the groups of a group, by the symbol at a place, with those of the steps
// that lead there.
func (x *trieCounter) part(g group, steps []Step, at int, next []group) []group {
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
		if i := x.groupOf[st.Symbol]; i > 0 {
			next[i-1].bundles = append(next[i-1].bundles, st.To)
		}
	}
	for _, made := range next[first:] {
		x.groupOf[x.pattern(made.from)[at]] = 0
	}
	return next
}

package query

import (
	"math"
	"slices"

	"wpptrace/internal/saturating"
)

// coverage returns for each of the patterns the cost of what ran within an occurrence of it or of
// one before it, each execution of a path counted once. Time and memory are in proportion to the
// right-hand sides times the longest pattern; time also to the lengths of the occurrences found
// there.
func coverage(f *forests, patterns [][]uint32, cost []uint64) []uint64 {
	if len(patterns) == 0 {
		return nil
	}
	longest := 0
	for _, p := range patterns {
		longest = max(longest, len(p))
	}
	c := &cover{matcher: newMatcher(patterns, f.symbols), cost: cost,
		total: make([]uint64, len(patterns))}
	readBoundaries(f, longest-1, c)
	for i := 1; i < len(c.total); i++ {
		c.total[i] = saturating.Add(c.total[i], c.total[i-1])
	}
	return c.total
}

// A cover ranks each terminal by the first of the patterns that cover it.
type cover struct {
	matcher *matcher
	state   uint32
	cost    []uint64
	total   []uint64 // rank -> cost of what this pattern covers and no earlier one
}

func (c *cover) begin(uint64) { c.state = 0 }

// push ranks the terminals that a match covers by the best of the matches that cover them: the
// longest first, which reach farthest back, and of the shorter ones those that are better than all
// longer ones.
func (c *cover) push(line []terminal, inside int) {
	c.state = c.matcher.next(c.state, line[len(line)-1].symbol)
	best, from := uint32(noPattern), len(line)
	for m := c.matcher.match[c.state]; m != 0 &&
		int(c.matcher.depth[m]) > inside; m = c.matcher.match[c.matcher.fail[m]] {
		if c.matcher.rank[m] < best {
			begin := len(line) - int(c.matcher.depth[m])
			lower(line[min(from, begin):begin], best)
			best, from = c.matcher.rank[m], begin
		}
	}
	lower(line[from:], best)
}

func lower(terminals []terminal, rank uint32) {
	for i := range terminals {
		terminals[i].rank = min(terminals[i].rank, rank)
	}
}

func (c *cover) settle(weight uint64, terminals []terminal) {
	for _, x := range terminals {
		if x.rank != noPattern {
			c.total[x.rank] = saturating.Add(c.total[x.rank],
				saturating.Mul(weight, c.cost[x.symbol]))
		}
	}
}

// coverEach sets what each of the subpaths covers, alone: each execution of a path counted once
// though occurrences of the subpath may overlap. It is count times the subpath's cost less what
// overlaps: an occurrence that the next one follows d symbols later shares all but its first d with
// it. How often one does is the frequency of the two of them in one string. These strings are
// counted all at once. Terms may pass 2^64, so they are added modulo 2^64: the result is exact, for
// it is at most the total. Where that has passed 2^64 itself, Covered is the Cost.
func coverEach(f *forests, subpaths []Subpath, cost []uint64, total uint64) {
	var twice [][]uint32
	var of []int // twice -> index in subpaths
	for i := range subpaths {
		p := &subpaths[i]
		if p.Covered = p.Cost; total == math.MaxUint64 {
			continue
		}
		p.Covered = p.Count * sum(p.Symbols, cost)
		for _, d := range nearestShifts(p.Symbols) {
			twice, of = append(twice, slices.Concat(p.Symbols[:d], p.Symbols)), append(of, i)
		}
	}
	for k, n := range countAll(f, twice) {
		p := &subpaths[of[k]]
		shared := p.Symbols[len(twice[k])-len(p.Symbols):]
		p.Covered -= n * sum(shared, cost)
	}
}

// sum adds up costs, modulo 2^64.
func sum(symbols []uint32, cost []uint64) (total uint64) {
	for _, sym := range symbols {
		total += cost[sym]
	}
	return total
}

// nearestShifts returns by how many symbols an occurrence of a sequence may be followed by the next
// that overlaps it.
func nearestShifts(sequence []uint32) []int {
	var shifts []int
	for d := 1; d < len(sequence); d++ {
		if !slices.Equal(sequence[d:], sequence[:len(sequence)-d]) {
			continue
		}
		twice := slices.Concat(sequence[:d], sequence)
		between := slices.ContainsFunc(shifts,
			func(e int) bool { return slices.Equal(twice[e:e+len(sequence)], sequence) })
		if !between {
			shifts = append(shifts, d)
		}
	}
	return shifts
}

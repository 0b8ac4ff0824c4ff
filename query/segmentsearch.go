package query

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
	"wpptrace/query/internal/matcher"
)

// Levels find what a search does where the grammars do not fit into memory: from each length to the
// next by reading the whole forest, once or twice. What follows a candidate is counted first in a
// sieve, by a hash, where most of it fails; the rest is counted exactly (as Park, Chen and Yu do
// for sets of items). So memory is bounded whatever the stream.
type segmentSearch struct {
	search *hotSearch
	forest *forest.Forest
	// cost of a sequence of the length that is counted -> the least count that makes it hot, or hot
	// later
	need map[uint64]uint64

	sieve []uint32 // by hash: counts of the length that is counted, up to 2^32-1
	shift int      // of a hash
}

// An edge leads from a candidate, by its index, to what a symbol makes of it.
type edge struct{ candidate, symbol uint32 }

// mostFollowers bounds the sequences of a length that are counted exactly, and the candidates. It
// is a variable for tests.
var mostFollowers = 1 << 20

// mostSieveBits makes the sieve 16 MiB at most: who records reports, too, and may be allowed 64
// MiB.
const mostSieveBits = 22

func newSegmentSearch(f *forest.Forest, c *costs, r *HotReport) *segmentSearch {
	sieveBits := min(max(1, bits.Len(uint(f.Largest()))), mostSieveBits)
	return &segmentSearch{search: newHotSearch(f, c, r), forest: f,
		sieve: make([]uint32, 1<<sieveBits), shift: 64 - sieveBits}
}

func (x *segmentSearch) run() ([]Subpath, error) {
	var next []candidate
	for sym, n := range x.forest.Counts() {
		if n > 0 {
			next = x.take(candidate{node: rootNode}, uint32(sym), n, 1, next)
		}
	}
	x.search.maximal.nextLength()
	for length := 2; length <= x.search.maxLength && len(next) > 0; length++ {
		if len(next) > mostFollowers {
			return nil, x.tooMany(length)
		}
		x.search.level, next = next, x.search.level[:0:0]
		counts, err := x.followers(length)
		if err != nil {
			return nil, err
		}
		for _, e := range sortedEdges(counts) {
			next = x.take(x.search.level[e.candidate], e.symbol, counts[e], length, next)
			if err := x.search.tooLarge(length); err != nil {
				return nil, err
			}
		}
		x.search.maximal.nextLength()
	}
	x.search.reportMaximal()
	return x.search.found, x.search.tooLarge(x.search.maxLength)
}

func (x *segmentSearch) tooMany(length int) error {
	return fmt.Errorf("more than %d subpaths of %d paths may be hot, which is too much to keep "+
		"in mind for a trace as large: %s", mostFollowers, length, askForLess)
}

func sortedEdges(counts map[edge]uint64) []edge {
	list := make([]edge, 0, len(counts))
	for e := range counts {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b edge) int {
		return slices.Compare([]uint32{a.candidate, a.symbol}, []uint32{b.candidate, b.symbol})
	})
	return list
}

// take is what fork does with a branch.
func (x *segmentSearch) take(c candidate, symbol uint32, count uint64, length int,
	next []candidate) []candidate {
	if x.search.isMark[symbol] {
		return next
	}
	cost := saturating.Add(c.cost, x.search.cost[symbol])
	hot := x.isHot(count, cost, length)
	switch {
	case hot && x.search.maximal == nil:
		x.search.report(trieNode{c.node, symbol}, count, cost)
	case hot || x.search.mayBecomeHot(count, cost, length):
		x.search.trie = append(x.search.trie, trieNode{c.node, symbol})
		x.search.maximal.add(x.search.trie, count, cost, hot)
		next = append(next, candidate{node: uint32(len(x.search.trie) - 1), cost: cost})
	}
	return next
}

func (x *segmentSearch) isHot(count, cost uint64, length int) bool {
	return length >= x.search.minLength && saturating.Mul(count, cost) >= x.search.minCost
}

// followers counts the symbols that follow the candidates, by the candidates' indices, as far as
// they may matter.
func (x *segmentSearch) followers(length int) (map[edge]uint64, error) {
	f := &followers{search: x, length: length, candidate: x.recognizer(length - 1)}
	clear(x.sieve)
	x.need = make(map[uint64]uint64)
	x.forest.Read(length-1, f)
	costliest := uint64(0)
	for _, c := range x.search.level {
		costliest = max(costliest, saturating.Add(c.cost, x.search.costly[0].cost))
	}
	if uint64(slices.Max(f.search.sieve)) < min(x.least(costliest, length), math.MaxUint32) {
		return nil, nil
	}
	f.counts = make(map[edge]uint64)
	x.forest.Read(length-1, f)
	if f.tooMany {
		return nil, x.tooMany(length)
	}
	return f.counts, nil
}

// recognizer returns what finds, symbol by symbol, which candidate the last symbols are, or
// matcher.None.
func (x *segmentSearch) recognizer(length int) func(symbol uint32, first bool) uint32 {
	if length == 1 {
		single := slices.Repeat([]uint32{matcher.None}, len(x.search.cost))
		for i, c := range x.search.level {
			single[x.search.trie[c.node].symbol] = uint32(i)
		}
		return func(symbol uint32, _ bool) uint32 { return single[symbol] }
	}
	patterns := make([][]uint32, len(x.search.level))
	for i, c := range x.search.level {
		patterns[i] = x.symbolsTo(c.node)
	}
	m, state := matcher.New(patterns, len(x.search.cost)), uint32(0)
	return func(symbol uint32, first bool) uint32 {
		if first {
			state = 0
		}
		state = m.Next(state, symbol)
		if hit := m.Longest(state); hit != 0 {
			return m.Rank(hit)
		}
		return matcher.None
	}
}

// symbolsTo is the sequence that a node of the trie stands for.
func (x *segmentSearch) symbolsTo(node uint32) []uint32 {
	var symbols []uint32
	for ; node != rootNode; node = x.search.trie[node].parent {
		symbols = append(symbols, x.search.trie[node].symbol)
	}
	slices.Reverse(symbols)
	return symbols
}

// least is the least count of a sequence that matters.
func (x *segmentSearch) least(cost uint64, length int) uint64 {
	n, ok := x.need[cost]
	if !ok {
		// the least that matters is above low, and at most high
		low, high := uint64(0), uint64(math.MaxUint64)
		for high-low > 1 {
			if middle := low + (high-low)/2; x.isHot(middle, cost, length) ||
				x.search.mayBecomeHot(middle, cost, length) {
				high = middle
			} else {
				low = middle
			}
		}
		n = high
		x.need[cost] = n
	}
	return n
}

// Followers read what follows candidates, first into the sieve, then exactly.
type followers struct {
	search    *segmentSearch
	length    int
	candidate func(symbol uint32, first bool) uint32
	counts    map[edge]uint64 // nil: the sieve is being filled
	tooMany   bool

	weight uint64
	pushed int
	before uint32 // candidate that the symbols before are
}

func (f *followers) Begin(weight uint64) { f.weight, f.pushed, f.before = weight, 0, matcher.None }

func (f *followers) Push(line []forest.Terminal, inside int) {
	symbol := line[len(line)-1].Symbol
	before := f.before
	f.before = f.candidate(symbol, f.pushed == 0)
	f.pushed++
	if before == matcher.None || inside >= f.length || f.search.search.isMark[symbol] {
		return
	}
	e := edge{before, symbol}
	hash := (uint64(before)<<32 | uint64(symbol)) * 0x9E3779B97F4A7C15 >> f.search.shift
	at := &f.search.sieve[hash]
	if f.counts == nil {
		*at = uint32(min(uint64(*at)+min(f.weight, math.MaxUint32), math.MaxUint32))
		return
	}
	least := f.search.least(saturating.Add(f.search.search.level[before].cost,
		f.search.search.cost[symbol]), f.length)
	if *at < math.MaxUint32 && uint64(*at) < least || f.tooMany {
		return
	}
	f.counts[e] = saturating.Add(f.counts[e], f.weight)
	f.tooMany = len(f.counts) > mostFollowers
}

package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
)

// A hotSearch finds the minimal hot subpaths, or the maximal ones. It goes from each length to the
// next: a candidate is a sequence that is not hot, nor any of its prefixes of the least length, but
// may become so when it grows. Its occurrences in the grammar are all that is kept of it, with its
// node in a trie of the sequences met. For the maximal ones it goes on where a sequence is hot, and
// see maximality.
type hotSearch struct {
	walker    *forest.Walker // nil: the search reads segments
	isMark    []bool
	cost      []uint64 // of an execution of each symbol
	costly    []costlySymbol
	costliest uint64 // what no sequence of maxLength costs more than
	minLength int
	maxLength int
	minCost   uint64
	maximal   *maximality // nil: the minimal ones are asked for

	trie     []trieNode
	level    []candidate
	branches []branch
	branchOf []uint32 // symbol -> its index in branches plus 1; all 0 between forks
	found    []Subpath
	size     int // symbols in found
}

// mostFoundSymbols and mostSequences bound the memory that it takes to count an answer, a hundred
// bytes a symbol, and to search for it. They are variables for tests.
var (
	mostFoundSymbols = 1 << 22
	mostSequences    = 1 << 22
)

type trieNode struct{ parent, symbol uint32 }

type candidate struct {
	node    uint32
	cost    uint64 // of one execution
	bundles []forest.Bundle
}

// A branch is one of the symbols that follow a candidate.
type branch struct {
	symbol uint32
	count  uint64
	steps  int
	kept   []forest.Bundle
}

func newHotSearch(f *forest.Forest, c *costs, r *HotReport) *hotSearch {
	x := &hotSearch{
		isMark:    c.isMark,
		cost:      c.of,
		minLength: r.Query.MinLength,
		maxLength: r.Query.MaxLength,
		minCost:   r.MinCost,
		branchOf:  make([]uint32, len(c.of)),
	}
	if r.Query.Kind == Maximal {
		x.maximal = newMaximality()
	}
	x.costly = x.costlySymbols(f.Counts())
	if f.AtOnce() {
		x.walker = f.Walker()
	}
	if f.AtOnce() && r.Query.Metric != Executions {
		x.costliest = costliestWindow(f, x.maxLength, x.cost)
	} else if len(x.costly) > 0 {
		// a bound that takes no reading, and is as good where all paths cost the same
		x.costliest = saturating.Mul(uint64(x.maxLength), x.costly[0].cost)
	}
	return x
}

func (x *hotSearch) run() ([]Subpath, error) {
	root := candidate{node: math.MaxUint32}
	next := x.fork(root, x.walker.Singles(nil), 1, nil)
	x.maximal.nextLength()
	for length := 2; length <= x.maxLength && len(next) > 0; length++ {
		x.level, next = next, x.level[:0]
		for i, c := range x.level {
			x.level[i].bundles = nil
			begin := len(x.trie)
			if shorter := x.maximal.goesOnAs(c.node); shorter != nil {
				next = x.forkAs(shorter, c, length, next)
			} else {
				next = x.fork(c, x.walker.Follow(c.bundles), length, next)
			}
			x.maximal.setChildren(c.node, begin, len(x.trie))
			if err := x.tooLarge(length); err != nil {
				return nil, err
			}
		}
		x.maximal.nextLength()
	}
	x.reportMaximal()
	return x.found, x.tooLarge(x.maxLength)
}

const askForLess = "ask for a greater least cost, or shorter ones"

// tooLarge fails when the search, which has come to that length, takes more memory than it may.
func (x *hotSearch) tooLarge(length int) error {
	switch {
	case x.size > mostFoundSymbols:
		return fmt.Errorf("the hot subpaths have more than %d paths together, which is too much "+
			"to keep in mind: %s", mostFoundSymbols, askForLess)
	case len(x.trie) > mostSequences:
		return fmt.Errorf("more than %d sequences of up to %d paths may be hot, which is too "+
			"much to keep in mind: %s", mostSequences, length, askForLess)
	}
	return nil
}

// fork sorts the steps that follow a candidate by their symbols, and appends what may become hot of
// that to next.
func (x *hotSearch) fork(c candidate, steps []forest.Step, length int,
	next []candidate) []candidate {
	x.count(steps)
	for i := range x.branches {
		b := &x.branches[i]
		if x.isMark[b.symbol] {
			continue
		}
		longer, ok := x.grow(c, b.symbol, b.count, length)
		if !ok {
			continue
		}
		if x.maximal.goesOnAs(longer.node) == nil {
			b.kept = make([]forest.Bundle, 0, b.steps)
			longer.bundles = b.kept[:b.steps]
		}
		next = append(next, longer)
	}
	for _, st := range steps {
		if b := &x.branches[x.branchOf[st.Symbol]-1]; b.kept != nil {
			b.kept = append(b.kept, st.To)
		}
	}
	for _, b := range x.branches {
		x.branchOf[b.symbol] = 0
	}
	return next
}

// forkAs is fork for a candidate that goes on as a shorter sequence does.
func (x *hotSearch) forkAs(shorter *extension, c candidate, length int,
	next []candidate) []candidate {
	for n := shorter.children[0]; n < shorter.children[1]; n++ {
		if longer, ok := x.grow(c, x.trie[n].symbol, x.maximal.nodes[n].count, length); ok {
			next = append(next, longer)
		}
	}
	return next
}

// grow makes a candidate longer by a symbol. A sequence that is hot now is found; one that may
// become hot is the next candidate; others are dropped.
func (x *hotSearch) grow(c candidate, symbol uint32, count uint64,
	length int) (longer candidate, ok bool) {
	cost := saturating.Add(c.cost, x.cost[symbol])
	hot := length >= x.minLength && saturating.Mul(count, cost) >= x.minCost
	switch {
	case hot && x.maximal == nil:
		x.report(trieNode{c.node, symbol}, count, cost)
	case hot || x.mayBecomeHot(count, cost, length):
		x.trie = append(x.trie, trieNode{c.node, symbol})
		x.maximal.add(x.trie, count, cost, hot)
		return candidate{node: uint32(len(x.trie) - 1), cost: cost}, true
	}
	return candidate{}, false
}

// count makes the branches of steps.
func (x *hotSearch) count(steps []forest.Step) {
	x.branches = x.branches[:0]
	for _, st := range steps {
		i := x.branchOf[st.Symbol]
		if i == 0 {
			x.branches = append(x.branches, branch{symbol: st.Symbol})
			i = uint32(len(x.branches))
			x.branchOf[st.Symbol] = i
		}
		b := &x.branches[i-1]
		b.steps++
		b.count = saturating.Add(b.count, st.To.Count)
	}
}

// A costlySymbol occurs more often than any symbol that costs more.
type costlySymbol struct{ cost, count uint64 }

// costlySymbols lists them from the costliest to the most frequent.
func (x *hotSearch) costlySymbols(counts []uint64) []costlySymbol {
	all := make([]costlySymbol, len(x.cost))
	for v, n := range counts {
		if n > 0 && !x.isMark[v] {
			all[v] = costlySymbol{x.cost[v], n}
		}
	}
	slices.SortFunc(all, func(a,
		b costlySymbol) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(b.count, a.count))
	})
	var costly []costlySymbol
	for _, d := range all {
		if len(costly) == 0 || d.count > costly[len(costly)-1].count {
			costly = append(costly, d)
		}
	}
	return costly
}

// mayBecomeHot is exact pruning. If the costliest symbol that a sequence grows by is d, it grows by
// no more than d's cost a symbol, and occurs then no more often than d does, nor than it does now.
// Nor does it ever cost more than the costliest window.
func (x *hotSearch) mayBecomeHot(count, cost uint64, length int) bool {
	more := uint64(x.maxLength - length)
	for _, d := range x.costly {
		grown := min(x.costliest, saturating.Add(cost, saturating.Mul(more, d.cost)))
		if more > 0 && saturating.Mul(min(count, d.count), grown) >= x.minCost {
			return true
		}
		if d.count >= count {
			break
		}
	}
	return false
}

// report adds what a node of the trie stands for, given what one execution costs.
func (x *hotSearch) report(last trieNode, count, cost uint64) {
	if x.size > mostFoundSymbols {
		return
	}
	symbols := []uint32{last.symbol}
	for n := last.parent; n != math.MaxUint32; n = x.trie[n].parent {
		symbols = append(symbols, x.trie[n].symbol)
	}
	slices.Reverse(symbols)
	x.size += len(symbols)
	x.found = append(x.found, Subpath{Symbols: symbols, Count: count,
		Cost: saturating.Mul(count, cost)})
}

// costliestWindow returns the most that width symbols in a row, or fewer, cost anywhere. It takes
// time and memory in proportion to the right-hand sides times width.
func costliestWindow(f *forest.Forest, width int, cost []uint64) uint64 {
	w := &window{width: width, cost: cost}
	f.Read(width-1, w)
	return w.costliest
}

type window struct {
	width     int
	cost      []uint64
	length    int
	sum       uint64
	costliest uint64
}

func (w *window) Begin(uint64) { w.length, w.sum = 0, 0 }

func (w *window) Push(line []forest.Terminal, _ int) {
	last := len(line) - 1
	w.sum += w.cost[line[last].Symbol]
	if w.length++; w.length > w.width {
		w.length = w.width
		w.sum -= w.cost[line[last-w.width].Symbol]
	}
	w.costliest = max(w.costliest, w.sum)
}

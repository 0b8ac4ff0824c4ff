package query

import (
	"iter"
	"math"
	"runtime/debug"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// Forests are what a query reads of threads: one forest where their grammars fit into memory, and
// where not one after the other, of a thread or of a segment of one. Whatever reads all of them in
// turn takes the memory of one. They belong to one goroutine.
type forests struct {
	threads []*wpp.Thread
	symbols int      // terminals are below this
	renamed []uint32 // terminal of a grammar -> of the forests; nil: the same
	costs   *costs   // nil: no path is distinguished by what ran before it
	whole   *forest  // nil: there are several
	counts  []uint64 // see count
}

// mostAtOnce is how many right-hand-side symbols one forest may have of threads that are in
// segments. Tests make it less.
var mostAtOnce = 1 << 22

// roomAtOnce is how many symbols may be laid out at once in the memory that the process is to keep
// to (debug.SetMemoryLimit): one takes some 50 bytes of that in a search, and as much again while
// it grows.
func roomAtOnce() int {
	const symbol = 128
	return int(min(debug.SetMemoryLimit(-1)/symbol, math.MaxInt))
}

func newForests(s *wpp.Snapshot, threads []*wpp.Thread) *forests {
	return newForestsAt(s, threads, nil)
}

// newForestsAt makes forests whose terminals are those of costs.
func newForestsAt(s *wpp.Snapshot, threads []*wpp.Thread, c *costs) *forests {
	f := &forests{threads: threads, symbols: len(s.Symbols)}
	if c != nil && c.varies != nil {
		f.costs, f.symbols = c, len(c.of)
	}
	symbols, segments := 0, 0
	for _, t := range threads {
		symbols += t.Grammar.BodySymbols()
		segments += t.Grammar.NumSegments()
	}
	room := roomAtOnce()
	if segments > 0 {
		room = min(room, mostAtOnce)
	}
	if symbols <= room || segments == 0 && len(threads) == 1 {
		var grammars []rules
		for _, t := range threads {
			g, _ := f.behind(nothing, t.Grammar)
			grammars = append(grammars, g)
		}
		f.whole = newForest(f.symbols, grammars)
	}
	return f
}

// behind is a grammar as it is laid out where a terminal ran before it, and its last terminal.
func (f *forests) behind(before uint32, g *wpp.Grammar) (rules, uint32) {
	if f.costs == nil {
		return g, nothing
	}
	x := newInContext(g, f.costs, before)
	return x, x.ends[0][1]
}

// rename gives the terminals other names, below a number of symbols.
func (f *forests) rename(to []uint32, symbols int) {
	if old := f.counts; old != nil {
		f.counts = make([]uint64, symbols)
		for v, n := range old {
			f.counts[to[v]] = saturating.Add(f.counts[to[v]], n)
		}
	}
	f.renamed, f.symbols = to, symbols
	if f.whole != nil {
		f.whole.rename(to, symbols)
	}
}

// each iterates over the forests. Behind the segments of a thread comes one that joins them.
func (f *forests) each() iter.Seq[*forest] {
	return func(yield func(*forest) bool) {
		if f.whole != nil {
			yield(f.whole)
			return
		}
		for _, t := range f.threads {
			g, last := t.Grammar, uint32(nothing)
			if g.NumSegments() == 0 {
				whole, _ := f.behind(nothing, g)
				if !yield(f.lay(whole)) {
					return
				}
			}
			for i := range g.NumSegments() {
				segment, _ := g.Segment(i)
				var inContext rules
				inContext, last = f.behind(last, segment)
				x := f.lay(inContext)
				x.isSegment = true
				if !yield(x) {
					return
				}
			}
			if g.NumSegments() > 0 && !yield(joint(g, f.symbols)) {
				return
			}
		}
	}
}

func (f *forests) lay(g rules) *forest {
	x := &forest{symbols: f.symbols}
	x.lay(g)
	if f.renamed != nil {
		x.rename(f.renamed, f.symbols)
	}
	return x
}

// joint is the forest of the start rule of a grammar in segments. What a query has found out of the
// start rules of these, it knows of rules 1, 2 and so on, which have no right-hand sides here.
func joint(g *wpp.Grammar, symbols int) *forest {
	x := &forest{symbols: symbols, upwards: []uint32{0}, joins: true}
	for i, v := range g.Body(0) {
		x.body = append(x.body, wpp.RuleSymbol(i+1))
		x.length = append(x.length, g.Length(wpp.RuleOf(v)))
	}
	x.length = append([]uint64{g.Length(0)}, x.length...)
	x.begin = []uint32{0}
	x.used = []uint32{0}
	x.derived = []uint64{1}
	for range g.Body(0) {
		x.body = append(x.body, endOfRule)
		x.begin = append(x.begin, uint32(len(x.body)))
		x.used = append(x.used, 1)
		x.derived = append(x.derived, 1)
	}
	x.body = append(x.body, endOfRule)
	return x
}

// count returns how often each terminal occurs. It takes a pass over the forests, once.
func (f *forests) count() []uint64 {
	if f.counts != nil {
		return f.counts
	}
	f.counts = make([]uint64, f.symbols)
	for x := range f.each() {
		for rule := range x.begin {
			for _, v := range x.rightSide(uint32(rule)) {
				if !wpp.IsRule(v) {
					f.counts[v] = saturating.Add(f.counts[v], x.derived[rule])
				}
			}
		}
	}
	return f.counts
}

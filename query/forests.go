package query

import (
	"iter"

	"wpptrace/compress/wpp"
)

// Forests are what a query reads of threads: one forest where their grammars fit into memory, and where not one after the other, of a thread or of a segment of one. Whatever
// reads all of them in turn takes the memory of one. They belong to one goroutine.
type forests struct {
	threads []*wpp.Thread
	symbols int      // terminals are below this
	renamed []uint32 // terminal of a grammar -> of the forests; nil: the same
	whole   *forest  // nil: there are several
	counts  []uint64 // see count
}

// mostAtOnce is how many right-hand-side symbols one forest may have of threads that are in segments. Tests make it less.
var mostAtOnce = 1 << 22

func newForests(s *wpp.Snapshot, threads []*wpp.Thread) *forests {
	f := &forests{threads: threads, symbols: len(s.Symbols)}
	symbols, segments := 0, 0
	for _, t := range threads {
		symbols += t.Grammar.BodySymbols()
		segments += t.Grammar.NumSegments()
	}
	if segments == 0 || symbols <= mostAtOnce {
		f.whole = newForest(s, threads)
	}
	return f
}

// rename gives the terminals other names, below a number of symbols.
func (f *forests) rename(to []uint32, symbols int) {
	f.renamed, f.symbols, f.counts = to, symbols, nil
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
			g := t.Grammar
			if g.NumSegments() == 0 && !yield(f.lay(g)) {
				return
			}
			for i := range g.NumSegments() {
				segment, _ := g.Segment(i)
				x := f.lay(segment)
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

func (f *forests) lay(g *wpp.Grammar) *forest {
	x := &forest{symbols: f.symbols}
	x.lay(g)
	if f.renamed != nil {
		x.rename(f.renamed, f.symbols)
	}
	return x
}

// joint is the forest of the start rule of a grammar in segments. What a query has found out of the start rules of these, it knows of rules 1, 2 and so on, which have no right-hand
// sides here.
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
					f.counts[v] = addSaturating(f.counts[v], x.derived[rule])
				}
			}
		}
	}
	return f.counts
}

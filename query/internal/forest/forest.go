package forest

import (
	"iter"
	"math"
	"runtime/debug"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A Forest is what a query reads of threads: their grammars as one piece where they fit into
// memory, and where not one after the other, of a thread or of a segment of one. Whatever reads all
// of them in turn takes the memory of one. It belongs to one goroutine, for it is extended as it is
// asked.
type Forest struct {
	symbols  int            // terminals are below this
	grammars []*wpp.Grammar // where they are several pieces
	apart    *Apart         // nil: no terminal is another one behind some
	renamed  []uint32       // terminal of a grammar -> of the forest; nil: the same
	whole    *piece         // nil: they are several
	counts   []uint64       // see Counts
}

// MostAtOnce is how many right-hand-side symbols one piece may have of threads that are in
// segments. Tests make it less.
var MostAtOnce = 1 << 22

// roomAtOnce is how many symbols may be laid out at once in the memory that the process is to keep
// to (debug.SetMemoryLimit): one takes some 50 bytes of that in a search, and as much again while
// it grows.
func roomAtOnce() int {
	const symbol = 128
	return int(min(debug.SetMemoryLimit(-1)/symbol, math.MaxInt))
}

// New makes the forest of grammars whose terminals are below a number of symbols. Where some are
// told apart (apart is not nil), that number is with those. Where the grammars are laid out at
// once, time and memory are linear in the right-hand sides, some 12 bytes a symbol and 60 a rule,
// and the grammars are not kept. Else they are read whenever something is asked.
func New(symbols int, grammars []*wpp.Grammar, apart *Apart) *Forest {
	f := &Forest{symbols: symbols, apart: apart}
	bodies, segments := 0, 0
	for _, g := range grammars {
		bodies += g.BodySymbols()
		segments += g.NumSegments()
	}
	room := roomAtOnce()
	if segments > 0 {
		room = min(room, MostAtOnce)
	}
	if bodies > room && (segments > 0 || len(grammars) != 1) {
		f.grammars = grammars
		return f
	}
	var parts []rules
	for _, g := range grammars {
		part, _ := apart.behind(nothing, g)
		parts = append(parts, part)
	}
	f.whole = newPiece(symbols, parts)
	return f
}

// AtOnce reports whether the grammars are one piece, so that there is a Walker of it.
func (f *Forest) AtOnce() bool { return f.whole != nil }

// Largest is how many right-hand-side symbols the largest grammar has, where they are several
// pieces: else 0.
func (f *Forest) Largest() (symbols int) {
	for _, g := range f.grammars {
		symbols = max(symbols, g.BodySymbols())
	}
	return symbols
}

// Rename gives the terminals other names, below a number of symbols. It keeps to, by terminal, and
// takes time linear in the right-hand sides.
func (f *Forest) Rename(to []uint32, symbols int) {
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

// pieces iterates over the forest. Behind the segments of a thread comes one that joins them.
func (f *Forest) pieces() iter.Seq[*piece] {
	return func(yield func(*piece) bool) {
		if f.whole != nil {
			yield(f.whole)
			return
		}
		for _, g := range f.grammars {
			last := nothing
			if g.NumSegments() == 0 {
				whole, _ := f.apart.behind(nothing, g)
				if !yield(f.lay(whole)) {
					return
				}
			}
			for i := range g.NumSegments() {
				segment, _ := g.Segment(i)
				var inContext rules
				inContext, last = f.apart.behind(last, segment)
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

func (f *Forest) lay(g rules) *piece {
	x := &piece{symbols: f.symbols}
	x.lay(g)
	if f.renamed != nil {
		x.rename(f.renamed, f.symbols)
	}
	return x
}

// joint is the piece of the start rule of a grammar in segments. What a query has found out of the
// start rules of these, it knows of rules 1, 2 and so on, which have no right-hand sides here.
func joint(g *wpp.Grammar, symbols int) *piece {
	x := &piece{symbols: symbols, upwards: []uint32{0}, joins: true}
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

// Counts returns how often each terminal occurs, by terminal; it stays the forest's own. It takes a
// pass over the forest, once.
func (f *Forest) Counts() []uint64 {
	if f.counts != nil {
		return f.counts
	}
	f.counts = make([]uint64, f.symbols)
	for x := range f.pieces() {
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

// DropCounts lets go of what Counts has counted: 8 bytes a terminal.
func (f *Forest) DropCounts() { f.counts = nil }

package bounds

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/internal/stream"
)

// An Overlapping is how often an overlapping path ran: a path, and how execution went on behind it.
type Overlapping struct {
	Kind    overlapped.Kind
	First   uint32 // the symbol of the path p
	Routine int    // that the extension runs in: index in Snapshot.Routines
	Blocks  []int  // the extension; behind a back edge, as far as it is in the loop
	N       uint64
}

// Whole is a degree at which each extension is a whole path, or its part within the loop.
const Whole = 1 << 30

// A Profile is how often overlapping paths ran.
type Profile struct {
	Degree int // of the paths in Counts: Whole if the order of paths is known
	Counts []Overlapping
	// what is no pair, by reason: see overlapped.Pairs
	Broken [overlapped.Reasons]uint64
}

// Shapes are what of routines overlapping paths follow from, by the index in Snapshot.Routines.
// A routine without one has no pairs.
type Shapes map[int]*overlapped.Shape

// Follow counts the pairs of a recording. It reads what grammars derive from beginning to end, as
// returns are told from ends of call-backs by what is open: its time is in proportion to the length
// of the streams, some 50 ns a symbol, and its memory to the different pairs.
func Follow(s *wpp.Snapshot, shapes Shapes) (p *Profile, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, nil)
	if err != nil {
		return nil, err
	}
	f := follower{s: s, last: make([]*tally, len(s.Symbols)), all: map[pair]*tally{}}
	f.pairs = overlapped.NewPairs(new(ops.Symbols),
		func(sym uint32) overlapped.Path { return describe(s, shapes, sym) }, f.count)
	for _, t := range threads {
		f.follow(t)
	}
	p = &Profile{Degree: Whole, Broken: f.pairs.Broken}
	for _, x := range f.order {
		q := &s.Symbols[x.second]
		o := Overlapping{x.kind, x.first, q.Routine, q.Blocks, x.n}
		if x.kind == overlapped.OverLoop {
			shape := shapes[q.Routine]
			o.Blocks = shape.Loops[shape.LoopAt(q.Blocks[0])].After(q.Blocks)
		}
		p.Counts = append(p.Counts, o)
	}
	return p, nil
}

// describe says what of a symbol's path it depends on with which others it makes pairs.
func describe(s *wpp.Snapshot, shapes Shapes, sym uint32) overlapped.Path {
	y := &s.Symbols[sym]
	shape := shapes[y.Routine]
	p := overlapped.Path{Start: y.Start, End: y.End, Callee: -1, Whole: isWhole(y)}
	if shape == nil {
		p.Whole = false
		return p
	}
	if p.Whole && (y.End == ops.EndCall || y.End == ops.EndTail) {
		p.Callee = shape.Callee(y.Blocks[len(y.Blocks)-1])
	}
	if p.Whole && y.Start == ops.StartLoop {
		l := shape.LoopAt(y.Blocks[0])
		p.LeftOut = l < 0 || shape.Loops[l].LeftOut != ""
	}
	return p
}

type pair struct {
	kind          overlapped.Kind
	first, second uint32
}

type tally struct {
	pair
	n uint64
}

type follower struct {
	s     *wpp.Snapshot
	pairs *overlapped.Pairs
	last  []*tally // by second symbol: where it was counted last, which is where it is most often
	all   map[pair]*tally
	order []*tally
}

// A bySymbol hands the operations of an expander on, but for paths, whose symbol is known.
type bySymbol struct {
	*overlapped.Thread
	sym uint32
}

func (b *bySymbol) NewPath(_ int, _, times uint64) { b.Symbol(b.sym, times) }

func (f *follower) follow(t *wpp.Thread) {
	sink := &bySymbol{Thread: f.pairs.Thread()}
	x := ops.NewExpander(sink)
	c := stream.New(t.Grammar)
	for sym, ok := c.Next(); ok; sym, ok = c.Next() {
		y := &f.s.Symbols[sym]
		if y.IsMark {
			x.Mark(y.Mark, y.N)
			continue
		}
		sink.sym = sym
		x.Path(y.Routine, y.Path, y.Start, y.End)
	}
}

func (f *follower) count(kind overlapped.Kind, first, second uint32, times uint64) {
	p := pair{kind, first, second}
	x := f.last[second]
	if x == nil || x.pair != p {
		if x = f.all[p]; x == nil {
			x = &tally{pair: p}
			f.all[p] = x
			f.order = append(f.order, x)
		}
		f.last[second] = x
	}
	x.n = saturating.Add(x.n, times)
}

// isWhole reports whether a symbol is a path that is known from its start to its end.
func isWhole(y *wpp.Symbol) bool {
	return !y.IsMark && y.Start != ops.StartResume && y.End != ops.EndCut && len(y.Blocks) > 0
}

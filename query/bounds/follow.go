package bounds

import (
	"math"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/internal/stream"
)

// Whole is a degree at which each extension is a whole path, or its part within the loop.
const Whole = math.MaxInt32

// Follow counts the pairs of a recording, by shapes of its routines: those that have none make
// none. The result is a profile of degree Whole. It reads what grammars derive from beginning to
// end, as returns are told from ends of call-backs by what is open: its time is in proportion to
// the length of the streams, some 30 ns a symbol, and its memory to the different pairs.
func Follow(s *wpp.Snapshot, shapes []overlapped.Shape) (p *overlapped.Profile, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, nil)
	if err != nil {
		return nil, err
	}
	p = &overlapped.Profile{Degree: Whole, Shapes: shapes}
	f := follower{s: s, last: make([]*tally, len(s.Symbols)), all: map[pair]*tally{}}
	f.pairs = overlapped.NewPairs(new(ops.Symbols),
		func(sym uint32) overlapped.Path { return describe(s, p, sym) }, f.count)
	for _, t := range threads {
		f.follow(t)
	}
	p.Broken = f.pairs.Broken
	extensions := map[uint32]int{} // by the symbol of the path that they are of
	for _, x := range f.order {
		at, ok := extensions[x.second]
		if !ok {
			at = len(p.Extensions)
			extensions[x.second] = at
			p.Extensions = append(p.Extensions, whole(p, &s.Symbols[x.second]))
		}
		p.Counts = append(p.Counts, overlapped.Count{Path: x.first, Extension: at, N: x.n})
	}
	return p, nil
}

// whole returns the extension that is all of a path, or of its part within the loop.
func whole(p *overlapped.Profile, q *wpp.Symbol) overlapped.Extension {
	x := overlapped.Extension{Routine: q.Routine, Loop: -1, Blocks: q.Blocks}
	if q.Start == ops.StartLoop {
		shape := p.ShapeOf(q.Routine)
		x.Loop = shape.LoopAt(q.Blocks[0])
		x.Blocks = shape.Loops[x.Loop].After(q.Blocks)
	}
	return x
}

// describe says what of a symbol's path it depends on with which others it makes pairs.
func describe(s *wpp.Snapshot, profile *overlapped.Profile, sym uint32) overlapped.Path {
	y := &s.Symbols[sym]
	shape := profile.ShapeOf(y.Routine)
	p := overlapped.Path{Routine: y.Routine, Start: y.Start, End: y.End, Callee: -1,
		Whole: isWhole(y)}
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

type pair struct{ first, second uint32 }

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

func (f *follower) follow(t *wpp.Thread) {
	to := f.pairs.Thread()
	c := stream.New(t.Grammar)
	for sym, ok := c.Next(); ok; sym, ok = c.Next() {
		if y := &f.s.Symbols[sym]; y.IsMark {
			to.Mark(y.Mark, y.N)
		} else {
			to.Symbol(sym, 1)
		}
	}
}

func (f *follower) count(_ overlapped.Kind, first, second uint32, times uint64) {
	p := pair{first, second}
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

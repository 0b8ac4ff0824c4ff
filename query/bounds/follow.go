package bounds

import (
	"math"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/internal/stream"
)

// Whole is a degree at which each extension is a whole path, or its part within the loop.
const Whole = math.MaxInt32

// Follow counts the pairs of a recording, by shapes of its routines: those that have none make
// none. The result is a profile of degree Whole, whose Extensions and Counts are in the order in
// which the pairs first ran. A call whose callee the code does not name makes pairs where the
// snapshot says that all activations of the callee began there directly. It reads what grammars
// derive from beginning to end, for what is open tells returns from ends of call-backs: its time is
// in proportion to the length of the streams, some 30 ns a symbol, and its memory to the different
// pairs.
func Follow(s *wpp.Snapshot, shapes []overlapped.Shape) (p *overlapped.Profile, err error) {
	defer wpp.Recover(&err)
	threads, err := query.Threads(s, nil)
	if err != nil {
		return nil, err
	}
	p = &overlapped.Profile{Degree: Whole, Shapes: shapes}
	f := follower{s: s, last: make([]*tally, len(s.Symbols)), all: map[pair]*tally{}}
	f.pairs = overlapped.NewPairs(new(ops.Symbols),
		func(sym uint32) overlapped.Path {
			y := &s.Symbols[sym]
			return overlapped.PathOf(y, p.ShapeOf(y.Routine))
		}, f.count)
	if f.pairs.Entries, err = entries.Of(s); err != nil {
		return nil, err
	}
	unsure := map[Place]bool{}
	f.pairs.Unsure = func(u overlapped.Unsure) {
		if at := placeOfUnsure(s, u); !unsure[at] {
			unsure[at] = true
			p.Unsure = append(p.Unsure, u)
		}
	}
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
			y := &s.Symbols[x.second]
			p.Extensions = append(p.Extensions, p.ShapeOf(y.Routine).ExtensionOf(y))
		}
		p.Counts = append(p.Counts, overlapped.Count{Path: x.first, Extension: at, N: x.n})
	}
	return p, nil
}

// placeOfUnsure returns where a pair would be.
func placeOfUnsure(s *wpp.Snapshot, u overlapped.Unsure) Place {
	p, q := &s.Symbols[u.P], &s.Symbols[u.Q]
	if u.Kind == overlapped.Into {
		return Place{u.Kind, p.Routine, p.Blocks[len(p.Blocks)-1], q.Routine}
	}
	return Place{u.Kind, q.Routine, q.Blocks[0], p.Routine}
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

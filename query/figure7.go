package query

import (
	"encoding/binary"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
)

// A figure7 finds hot subpaths as Larus does (1999, figure 7): it visits each rule once, after
// those that it uses, and appends the prefixes of these to one string of at most L symbols, the
// subpath. Where the subpath becomes hot by the frequency of the rule, it is reported and begun
// anew. The choice is greedy: what begins within a reported subpath is missed, and so is what is
// hot only by what several rules add to it.
//
// Where the listing leaves room, it is read so:
//   - Freeze(Length()) comes after Clear(), and would freeze nothing away. The text says that a
//     prefix ends where the first hot subpath begins: the length meant is that of the subpath
//     before it is cleared.
//   - A prefix that was frozen, or that met its limit, does not cover its rule; nor does it go on
//     behind a rule that its own prefix does not cover, since what comes next there does not follow
//     what came before.
//   - L-limited strings drop their first symbol when they get too long.
//   - Marks, which Larus has not, end subpaths and prefixes.
//   - The same subpath may be reported at several rules. Here it is found once, and its count is
//     the exact one.
type figure7 struct {
	forest    *forest.Forest
	isMark    []bool
	cost      []uint64
	minLength int
	maxLength int
	minCost   uint64

	derived uint64 // the rule being visited
	front   limited
	seen    int      // symbols from the rule's beginning on, up to where front ends for good
	subpath []uint32 // what was met since the last hot subpath, at most maxLength
	expense uint64   // of the subpath

	reported map[string]bool
	found    [][]uint32
}

// Edges are what other rules need to know of a rule.
type edges struct {
	prefix limited
	suffix []uint32 // the subpath that its end leaves
}

// A limited string is the first symbols of a rule's expansion.
type limited struct {
	symbols []uint32
	closed  bool // nothing is appended any more
	covers  bool // it is the whole expansion
}

func newFigure7(f *forest.Forest, c *costs, r *HotReport) *figure7 {
	return &figure7{
		forest:    f,
		isMark:    c.isMark,
		cost:      c.of,
		minLength: r.Query.MinLength,
		maxLength: r.Query.MaxLength,
		minCost:   r.MinCost,
		reported:  make(map[string]bool),
	}
}

// run takes time in proportion to the right-hand sides times MaxLength, besides that of counting
// what it finds. Prefixes and suffixes are let go of when the last rule has read them.
func (x *figure7) run() []Subpath {
	forest.Upwards(x.forest, x.visit)
	counts := x.forest.CountAll(x.found)
	subpaths := make([]Subpath, len(x.found))
	for i, symbols := range x.found {
		n := counts[i]
		subpaths[i] = Subpath{Symbols: symbols, Count: n,
			Cost: saturating.Mul(n, costOf(symbols, x.cost))}
	}
	return subpaths
}

func (x *figure7) visit(r *forest.Rule[edges]) edges {
	x.derived, x.front, x.seen = r.Derived, limited{covers: true}, 0
	x.clear()
	for _, v := range r.Body {
		if !wpp.IsRule(v) {
			x.append(v)
			continue
		}
		used := r.Take(v)
		for _, sym := range used.prefix.symbols {
			x.append(sym)
		}
		if !used.prefix.covers {
			x.close()
			x.clear()
			for _, sym := range used.suffix {
				x.lengthen(sym)
			}
		}
	}
	if r.IsTop {
		return edges{}
	}
	return edges{x.front, slices.Clone(x.subpath)}
}

// close ends the prefix of the rule where it is.
func (x *figure7) close() { x.front.closed, x.front.covers = true, false }

func (x *figure7) clear() { x.subpath, x.expense = x.subpath[:0], 0 }

func (x *figure7) append(sym uint32) {
	if x.isMark[sym] {
		x.close()
		x.clear()
		return
	}
	x.seen++
	switch {
	case x.front.closed:
	case len(x.front.symbols) < x.maxLength:
		x.front.symbols = append(x.front.symbols, sym)
	default:
		x.front.covers = false
	}
	x.lengthen(sym)
	if len(x.subpath) < x.minLength || saturating.Mul(x.expense, x.derived) < x.minCost {
		return
	}
	x.report()
	if !x.front.closed {
		x.front.symbols = x.front.symbols[:min(len(x.front.symbols), x.seen-len(x.subpath))]
	}
	x.close()
	x.clear()
}

// lengthen appends to the subpath.
func (x *figure7) lengthen(sym uint32) {
	if len(x.subpath) == x.maxLength {
		x.expense -= x.cost[x.subpath[0]]
		x.subpath = append(x.subpath[:0], x.subpath[1:]...)
	}
	x.subpath = append(x.subpath, sym)
	x.expense += x.cost[sym]
}

func (x *figure7) report() {
	var key []byte
	for _, sym := range x.subpath {
		key = binary.LittleEndian.AppendUint32(key, sym)
	}
	if !x.reported[string(key)] {
		x.reported[string(key)] = true
		x.found = append(x.found, slices.Clone(x.subpath))
	}
}

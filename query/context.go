package query

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
	"wpptrace/query/internal/stream"
	"wpptrace/query/names"
)

// A Neighbour is what ran directly before or after executions of a path.
type Neighbour struct {
	// in the order in which they ran; fewer than asked for at the beginning or the end of a thread
	Symbols []uint32
	Count   uint64
}

// A Context is what ran around a path, or the paths of a routine.
type Context struct {
	Name   string
	Count  uint64 // executions
	Before []Neighbour
	After  []Neighbour // both by falling count, then by rising symbols
}

// MostNeighbours is the greatest number of symbols of a context, to each side.
const MostNeighbours = 1000

// ContextOf finds the dynamic context of what a name as in a rules.FindQuery stands for (Larus
// 1999, section 3.3): the sequences of k symbols, paths and marks, that ran directly before and
// directly after it in the threads with these ids, or in all, and how often each did. Time is in
// proportion to k times the right-hand sides, memory to what it finds, of which there is a limit.
func ContextOf(s *wpp.Snapshot, name string, k int, tids ...int) (c *Context, err error) {
	defer wpp.Recover(&err)
	if k < 1 || k > MostNeighbours {
		return nil, fmt.Errorf("context of %s: %d paths to each side are not between 1 and %d",
			names.Printable(name), k, MostNeighbours)
	}
	threads, err := Threads(s, tids)
	if err != nil {
		return nil, err
	}
	isNamed, err := names.Of(s).Select(name)
	if err != nil {
		return nil, fmt.Errorf("context of %s: %w", names.Printable(name), err)
	}
	x := &neighbours{named: make([]bool, len(s.Symbols)), k: k, most: mostContexts(k)}
	for sym := range s.Symbols {
		x.named[sym] = isNamed(&s.Symbols[sym])
	}
	f := newForest(s, threads)
	c = &Context{Name: name}
	for sym, n := range f.Counts() {
		if x.named[sym] {
			c.Count = saturating.Add(c.Count, n)
		}
	}
	f.Read(k, x)
	for _, t := range threads {
		x.readEnds(t.Grammar)
	}
	if x.tooMany {
		return nil, fmt.Errorf("context of %s: there are more than %d different ones: ask for "+
			"fewer paths to each side, or of a path that is rarer", names.Printable(name), x.most)
	}
	c.Before, c.After = x.before.list(), x.after.list()
	return c, nil
}

// mostShortContexts bounds the memory for short contexts, to some 100 MB. It is a variable for
// tests.
var mostShortContexts = 1 << 20

// mostContexts bounds the memory for contexts of a length, that for long ones to 256 MB.
func mostContexts(k int) int {
	// while they are counted, and when they are listed
	const bytes, eachContext, eachSymbol = 256 << 20, 100, 8
	return min(mostShortContexts, bytes/(eachContext+eachSymbol*k))
}

// Neighbours reads what runs before and after the paths of a name.
type neighbours struct {
	named         []bool // by symbol
	k             int
	length        int // symbols since begin, up to k + 1
	most          int // contexts
	weight        uint64
	before, after sequences
	tooMany       bool
}

func (x *neighbours) Begin(weight uint64) { x.length, x.weight = 0, weight }

func (x *neighbours) Push(line []forest.Terminal, inside int) {
	if x.length = min(x.length+1, x.k+1); x.length <= x.k || inside > x.k {
		return
	}
	window := line[len(line)-x.k-1:]
	if x.named[window[0].Symbol] {
		x.add(&x.after, window[1:], x.weight)
	}
	if x.named[window[x.k].Symbol] {
		x.add(&x.before, window[:x.k], x.weight)
	}
}

// add counts a context, unless there are too many.
func (x *neighbours) add(to *sequences, context []forest.Terminal, weight uint64) {
	if !x.tooMany {
		to.add(context, weight)
		x.tooMany = len(x.before)+len(x.after) > x.most
	}
}

// readEnds reads what has fewer than k symbols before it, because its thread begins there, or
// behind it, because that ends.
func (x *neighbours) readEnds(g *wpp.Grammar) {
	for _, backward := range []bool{false, true} {
		from, to, found := uint64(0), uint64(x.k), &x.before
		if backward {
			to, found = g.Length(0), &x.after
			from = to - min(to, uint64(x.k))
		}
		var met []forest.Terminal
		for sym := range stream.Range(g, from, to, backward) {
			if x.named[sym] && len(met) > 0 {
				part := slices.Clone(met)
				if backward {
					slices.Reverse(part)
				}
				x.add(found, part, 1)
			}
			met = append(met, forest.Terminal{Symbol: sym})
		}
	}
}

// Sequences are counted by their symbols.
type sequences map[string]uint64

func (s *sequences) add(terminals []forest.Terminal, weight uint64) {
	if *s == nil {
		*s = make(sequences)
	}
	var key []byte
	for _, c := range terminals {
		key = binary.LittleEndian.AppendUint32(key, c.Symbol)
	}
	(*s)[string(key)] = saturating.Add((*s)[string(key)], weight)
}

// list lists them by falling count, then by rising symbols.
func (s sequences) list() []Neighbour {
	var list []Neighbour
	for key, n := range s {
		symbols := make([]uint32, len(key)/4)
		for i := range symbols {
			symbols[i] = binary.LittleEndian.Uint32([]byte(key[4*i:]))
		}
		list = append(list, Neighbour{symbols, n})
	}
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Symbols, b.Symbols))
	})
	return list
}

package repair

// none is no position and no pair.
const none = 0

// A pair is two symbols side by side. Its occurrences are listed by the position of the left one;
// those that overlap one that is listed, as in three equal symbols, are not.
type pair struct {
	left, right uint32
	count       uint32
	first       uint32 // occurrence
	next        uint32 // pair in the same bucket
}

// A position is a symbol of a sequence and its neighbours. Position 0 is none, and ends each
// sequence on both sides.
type position struct {
	symbol     uint32
	prev, next uint32
	pair       uint32 // that is listed as beginning here
	prevSame   uint32 // occurrences of the same pair
	nextSame   uint32
}

// pairs are sequences with the pairs in them. Every new pair contains the symbol that was put in
// last; so the others never become more, and no new one occurs more often than what it comes from
// did.
type pairs struct {
	positions []position
	pairs     []pair
	numbers   map[[2]uint32]uint32
	buckets   []uint32 // pairs, by a count that they had: it may have become less, never more
	fresh     []uint32 // pairs that are in no bucket yet
}

func newPairs(symbols int) *pairs {
	return &pairs{positions: make([]position, 1, symbols+1), pairs: make([]pair, 1),
		numbers: map[[2]uint32]uint32{}}
}

// addSequence appends a sequence and returns the position where it begins.
func (p *pairs) addSequence(symbols []uint32) (first uint32) {
	last := uint32(none)
	for _, v := range symbols {
		at := uint32(len(p.positions))
		p.positions = append(p.positions, position{symbol: v, prev: last})
		if last == none {
			first = at
		} else {
			p.positions[last].next = at
			p.list(last)
		}
		last = at
	}
	return first
}

// number returns the number of a pair.
func (p *pairs) number(left, right uint32) uint32 {
	key := [2]uint32{left, right}
	n, ok := p.numbers[key]
	if !ok {
		n = uint32(len(p.pairs))
		p.numbers[key] = n
		p.pairs = append(p.pairs, pair{left: left, right: right})
		p.fresh = append(p.fresh, n)
	}
	return n
}

// list lists the pair that begins at a position, unless it is listed, none, or overlaps an equal
// one that is listed.
func (p *pairs) list(at uint32) {
	if at == none || p.positions[at].next == none || p.positions[at].pair != none {
		return
	}
	x := &p.positions[at]
	right := &p.positions[x.next]
	n := p.number(x.symbol, right.symbol)
	if x.symbol == right.symbol &&
		(right.pair == n || x.prev != none && p.positions[x.prev].pair == n) {
		return
	}
	k := &p.pairs[n]
	x.pair, x.prevSame, x.nextSame = n, none, k.first
	if k.first != none {
		p.positions[k.first].prevSame = at
	}
	k.first = at
	k.count++
}

// unlist is the inverse of list.
func (p *pairs) unlist(at uint32) {
	x := &p.positions[at]
	if x.pair == none {
		return
	}
	k := &p.pairs[x.pair]
	if x.prevSame != none {
		p.positions[x.prevSame].nextSame = x.nextSame
	} else {
		k.first = x.nextSame
	}
	if x.nextSame != none {
		p.positions[x.nextSame].prevSame = x.prevSame
	}
	k.count--
	x.pair = none
}

// replace puts a symbol in the place of all occurrences of a pair.
func (p *pairs) replace(n, symbol uint32) {
	for p.pairs[n].first != none {
		at := p.pairs[n].first
		x := &p.positions[at]
		p.unlist(at)
		if x.prev != none {
			p.unlist(x.prev)
		}
		p.unlist(x.next)
		x.symbol = symbol
		x.next = p.positions[x.next].next
		if x.next != none {
			p.positions[x.next].prev = at
		}
		p.list(x.prev)
		p.list(at)
		// What overlapped a pair that is gone now may be listed.
		p.list(x.next)
		p.list(p.positions[x.prev].prev)
	}
	p.file()
}

// file puts the new pairs into their buckets. The first ones say how many buckets there are.
func (p *pairs) file() {
	if p.buckets == nil {
		most := uint32(1)
		for _, n := range p.fresh {
			most = max(most, p.pairs[n].count)
		}
		p.buckets = make([]uint32, most+1)
	}
	for _, n := range p.fresh {
		p.put(n)
	}
	p.fresh = p.fresh[:0]
}

// put puts a pair into the bucket of its count, unless it does not occur twice.
func (p *pairs) put(n uint32) {
	k := &p.pairs[n]
	if k.count < 2 {
		return
	}
	k.next = p.buckets[k.count]
	p.buckets[k.count] = n
}

// take takes out a pair that occurs most often, and at least twice.
func (p *pairs) take() (n uint32, ok bool) {
	for len(p.buckets) > 2 {
		count := uint32(len(p.buckets) - 1)
		n := p.buckets[count]
		if n == none {
			p.buckets = p.buckets[:count]
			continue
		}
		p.buckets[count] = p.pairs[n].next
		if p.pairs[n].count == count {
			return n, true
		}
		p.put(n)
	}
	return none, false
}

// sequence appends the symbols of the sequence that begins at a position.
func (p *pairs) sequence(symbols []uint32, first uint32) []uint32 {
	for at := first; at != none; at = p.positions[at].next {
		symbols = append(symbols, p.positions[at].symbol)
	}
	return symbols
}

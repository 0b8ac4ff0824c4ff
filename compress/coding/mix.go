package coding

import (
	"math/bits"
	"sync"
)

// Probabilities are in 65536ths; stretched ones, ln(p/(1-p)), in 256ths.
const (
	half       = 1 << 15
	stretchMax = 12*256 - 1
)

// logistic holds 65536 / (1 + exp(-x)) for x = -12, -11.5, ... 12, where it is neither 0 nor 1.
var logistic = [49]int32{
	1, 1, 1, 2, 3, 5, 8, 13, 22, 36, 60, 98,
	162, 267, 439, 720, 1179, 1921, 3108, 4971, 7812, 11955, 17625, 24743,
	32768, 40793, 47911, 53581, 57724, 60565, 62428, 63615, 64357, 64816, 65097, 65269,
	65374, 65438, 65476, 65500, 65514, 65523, 65528, 65531, 65533, 65534, 65535, 65535,
	65535,
}

// squash turns a stretched probability back into a probability, from 1 to 65535: a line between two
// of the points of logistic.
func squash(x int32) uint32 {
	x = min(max(x, -stretchMax), stretchMax) + 12*256
	i, f := x>>7, x&127
	return uint32((logistic[i]*(128-f) + logistic[i+1]*f) >> 7)
}

// stretched is the inverse of squash, by the probability's upper 12 bits.
var stretched = invertSquash()

func invertSquash() (table [1 << 12]int16) {
	next := 0
	for x := int32(-stretchMax); x <= stretchMax; x++ {
		for p := int(squash(x) >> 4); next <= p; next++ {
			table[next] = int16(x)
		}
	}
	for ; next < len(table); next++ {
		table[next] = stretchMax
	}
	return table
}

// A slot is what is known of one decision in one context, in 32 bits: 16 bits the probability of 1,
// 11 bits that distinguish the context from others in the same place, 5 bits how often it was met.
// 0 is a free slot.
type slot uint32

const (
	slotCheck = 1<<16 - 1<<5
	slotMet   = 1<<5 - 1

	// What was met so often counts as met no more often, so that what was learned long ago can be
	// forgotten.
	mostMet = 20
)

func (s slot) met() uint32 { return uint32(s & slotMet) }

// is reports whether the slot is of the context with a check.
func (s slot) is(check slot) bool { return s&slotCheck == check && s&slotMet > 0 }

// rates says how far a probability moves towards a decision that was met n times before, in
// 65536ths of the way: 1/(n+1.6).
var rates = makeRates()

func makeRates() (table [slotMet + 1]int32) {
	for n := range table {
		table[n] = 5 * 65536 / (5*int32(n) + 8)
	}
	return table
}

// after returns the slot when the decision has been met once more.
func (s slot) after(decision uint32) slot {
	p, n := int32(s>>16), s.met()
	p += (int32(decision)*65535 - p) * (rates[n] >> 1) >> 15
	return slot(p)<<16 | s&slotCheck | slot(min(n+1, mostMet))
}

// The contexts of a decision: what it is about, together with each of these numbers of terminals
// right before it.
var orders = [...]int{0, 1, 6}

const (
	contexts = len(orders)
	farthest = 6 // terminals that a context looks back at most

	// From so many symbols on, early files mix a context less, and then none but the first.
	manySymbolsEarly = 1 << 20
	mostSymbolsEarly = 1 << 22

	lineLength = 16 // slots: 64 bytes
	ways       = 4  // places for a slot in its line
)

// A line holds the slots of contexts whose hashes begin alike, in a line of the cache.
type line [lineLength]slot

// A predictor predicts decisions, has them coded, and learns from them. Its memory is fixed when it
// is made.
type predictor struct {
	*coder
	lines   []line
	shift   uint             // of a hash, to the number of a line
	used    int              // contexts that count
	before  [contexts]uint64 // hash of the terminals before, by context
	weights [sets][contexts + 1][contexts]int32

	about [contexts]place // what the next decisions are about, by context
	// read so that all their lines are on the way from memory before the first of them is waited
	// for
	ahead slot
}

// A place is where what is known of some decisions in a context lies: those about one thing that
// are taken together lie side by side, and differ by their member.
type place struct {
	line *line
	hash uint64
}

// firstWeight is what each context counts for before anything is learned, in 65536ths.
const firstWeight = 65536 * 35 / 100

// Logarithms of how many lines a predictor has.
const leastLines, mostLines = 10, 16

// smallLines keeps the lines of small predictors for the next ones: there are traces of a hundred
// thousand threads that do next to nothing.
var smallLines = sync.Pool{New: func() any { return new([1 << leastLines]line) }}

// mixedEarly is how many were mixed before files said how many.
func mixedEarly(symbols uint64) int {
	switch {
	case symbols >= mostSymbolsEarly:
		return 1
	case symbols >= manySymbolsEarly:
		return 2
	}
	return contexts
}

// newPredictor makes a predictor for a number of symbols that mixes so many contexts, in 64 KiB to
// 4 MiB.
func newPredictor(c *coder, symbols uint64, mixed int) predictor {
	lines := min(max(bits.Len64(symbols)-1, leastLines), mostLines)
	p := predictor{coder: c, shift: uint(64 - lines), used: mixed}
	if lines == leastLines {
		p.lines = smallLines.Get().(*[1 << leastLines]line)[:]
		clear(p.lines)
	} else {
		p.lines = make([]line, 1<<lines)
	}
	for i := range p.weights {
		for j := range p.weights[i] {
			for k := range p.weights[i][j] {
				p.weights[i][j][k] = firstWeight
			}
		}
	}
	return p
}

// release ends the predictor.
func (p *predictor) release() {
	if len(p.lines) == 1<<leastLines {
		smallLines.Put((*[1 << leastLines]line)(p.lines))
	}
	p.lines = nil
}

// find returns the slot of a context that is not at its first place in the line: the one that has
// its check, or the least met one where it may stand, made free.
func (l *line) find(at uint32, check slot) *slot {
	worst := &l[at%lineLength]
	for i := uint32(1); i < ways; i++ {
		s := &l[(at^i)%lineLength]
		if s.is(check) {
			return s
		}
		if s.met() < worst.met() {
			worst = s
		}
	}
	*worst = half<<16 | check
	return worst
}

// decide says what the next decisions are about.
func (p *predictor) decide(about uint64) {
	var ahead slot
	for i := range p.used {
		hash := (p.before[i] ^ about) * golden
		l := &p.lines[hash>>p.shift]
		ahead |= l[0]
		p.about[i] = place{l, hash}
	}
	p.ahead = ahead
}

// slot returns the slot of a member, which may be another's that is made free.
func (l *place) slot(member uint32) *slot {
	at, check := uint32(l.hash>>16)^member>>28, slot(uint32(l.hash>>20)^member>>12)&slotCheck
	if s := &l.line[at%lineLength]; s.is(check) {
		return s
	}
	return l.line.find(at, check)
}

func (s slot) stretched() int64 { return int64(stretched[s>>20]) }

// code codes a decision of a kind, a member of those about one thing. It is what coding spends its
// time on, and so has no loop over the contexts.
func (p *predictor) code(kind set, member, decision uint32) uint32 {
	var unused slot
	second, third := &unused, &unused
	var x, y, z int64
	known := 0 // contexts up to the longest that was met
	member *= golden >> 32
	first := p.about[0].slot(member)
	if x = first.stretched(); first.met() > 0 {
		known = 1
	}
	if p.used > 1 {
		second = p.about[1].slot(member)
		if y = second.stretched(); second.met() > 0 {
			known = 2
		}
	}
	if p.used > 2 {
		third = p.about[2].slot(member)
		if z = third.stretched(); third.met() > 0 {
			known = 3
		}
	}
	weights := &p.weights[kind][known]
	sum := x*int64(weights[0]) + y*int64(weights[1]) + z*int64(weights[2])
	probability := squash(int32(max(min(sum>>16, stretchMax), -stretchMax)))
	decision = p.bit(decision, probability)
	miss := (int64(decision<<16) - int64(probability)) >> 2
	weights[0] += int32((x*miss + 1<<13) >> 14)
	weights[1] += int32((y*miss + 1<<13) >> 14)
	weights[2] += int32((z*miss + 1<<13) >> 14)
	*first, *second, *third = first.after(decision), second.after(decision), third.after(decision)
	return decision
}

// golden is 2^64 divided by the golden ratio: multiplying by it spreads a key's bits over the upper
// half of the product.
const golden = 0x9e3779b97f4a7c15

// hash combines two keys.
func hash(a, b uint64) uint64 {
	h := (a+1)*golden + b
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

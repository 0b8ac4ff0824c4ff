package coding

import (
	"math/bits"

	"wpptrace/compress/sequitur"
)

// A chance is what is known of one decision in one context, in 16 bits: 12 bits the probability of
// 1, 4 bits how often it was met.
type chance uint16

const (
	evenChance = 1 << 15
	chanceMet  = 1<<4 - 1

	// What was met so often counts as met no more often.
	mostChanceMet = 14
)

// after returns the chance when the decision has been met once more.
func (c chance) after(decision uint32) chance {
	p, n := int32(c>>4), c&chanceMet
	p += (int32(decision)*(1<<12-1) - p) * rates[n] >> 16
	return chance(p)<<4 | min(n+1, mostChanceMet)
}

// A chanceLine holds the chances of decisions that are taken together, behind a number that says
// what they are about from others in the same place.
type chanceLine [16]chance

// freshLine is a line of which nothing is known.
var freshLine = chanceLine{
	0, evenChance, evenChance, evenChance, evenChance, evenChance, evenChance, evenChance,
	evenChance, evenChance, evenChance, evenChance, evenChance, evenChance, evenChance, evenChance,
}

// A quickModel codes a grammar as model does, but in one context and not mixed: the terminal before
// predicts the one that a symbol begins with, and that one which symbol it is. It takes a fifth of
// the time or less, and on SEQUITUR's grammars of programs' paths 7 to 13 % more bytes.
type quickModel struct {
	*coder
	lines []chanceLine
	shift uint        // of a hash, to the number of a line
	line  *chanceLine // what the next decisions are about

	rankOf    map[uint32]uint32 // terminal -> rank
	beginning [][]uint32        // rank -> the terminal, and the rules that begin with it
	rules     []quickRule       // by number
	open      []quickFrame      // bodies of which a part has been coded
	last      uint32            // terminal, by rank, of all that has been coded
	kinds     uint64            // of the symbols that were coded last
	value     uint32            // of the last new terminal
}

// A quickRule is a rule whose body is complete: its first and last terminal, by rank, and its place
// among those that begin with the first.
type quickRule struct{ first, last, place uint32 }

type quickFrame struct{ symbols, first uint32 }

// Logarithms of how many lines a quickModel has: 32 KiB to 4 MiB.
const leastQuickLines, mostQuickLines = 10, 17

func newQuickModel(c *coder, symbols uint64) *quickModel {
	lines := min(max(bits.Len64(symbols)-1, leastQuickLines), mostQuickLines)
	m := &quickModel{coder: c, lines: make([]chanceLine, 1<<lines), shift: uint(64 - lines),
		rankOf: map[uint32]uint32{}}
	m.begin()
	return m
}

func (m *quickModel) release() {}

func (m *quickModel) begin() {
	m.open = append(m.open, quickFrame{})
	m.rules = append(m.rules, quickRule{})
}

func (m *quickModel) end(rule int) {
	f := m.open[len(m.open)-1]
	m.open = m.open[:len(m.open)-1]
	if len(m.open) == 0 {
		return
	}
	alike := &m.beginning[f.first]
	m.rules[rule] = quickRule{first: f.first, last: m.last, place: uint32(len(*alike))}
	*alike = append(*alike, sequitur.RuleSymbol(rule))
	m.stand(f.first, m.last, aNewRule)
}

// stand makes an expansion, from its first terminal to its last, the next symbol of the innermost
// body.
func (m *quickModel) stand(first, last uint32, kind uint64) {
	f := &m.open[len(m.open)-1]
	if f.symbols == 0 {
		f.first = first
	}
	f.symbols++
	m.last = last
	m.kinds = m.kinds<<2&15 | kind
}

// decide says what the next decisions are about.
func (m *quickModel) decide(about uint64) {
	h := about * golden
	m.line = &m.lines[h>>m.shift]
	if check := chance(h>>8) | 1; m.line[0] != check { // no line is 0 that has been used
		*m.line = freshLine
		m.line[0] = check
	}
}

// code codes a decision, a member from 1 to 15 of those due.
func (m *quickModel) code(member, decision uint32) uint32 {
	c := &m.line[member%uint32(len(m.line))]
	decision = m.bit(decision, uint32(*c&^chanceMet|1<<3))
	*c = c.after(decision)
	return decision
}

func (m *quickModel) flag(member uint32, y bool) bool {
	decision := uint32(0)
	if y {
		decision = 1
	}
	return m.code(member, decision) == 1
}

// place describes where the next symbol stands.
func (m *quickModel) place() uint64 {
	return standing(m.kinds, len(m.open), int(m.open[len(m.open)-1].symbols))
}

func (m *quickModel) ends(y bool) bool {
	if m.open[len(m.open)-1].symbols == 0 && len(m.open) > 1 {
		return false
	}
	m.decide(hash(uint64(ends), m.place()))
	return m.flag(1, y)
}

func (m *quickModel) isNew(y bool) bool {
	m.decide(hash(uint64(isNew), m.place()))
	return m.flag(1, y)
}

func (m *quickModel) symbol(symbol uint32) uint32 {
	rank, place := m.find(symbol)
	rank = m.number(hash(hash(uint64(leftmost), m.kinds&3), uint64(m.last)), rank,
		uint32(len(m.beginning))+1)
	if int(rank) == len(m.beginning) {
		m.addTerminal(symbol)
		m.stand(rank, rank, aTerminal)
		return m.value
	}
	alike := m.beginning[rank]
	symbol = alike[m.number(hash(uint64(which), uint64(rank)), place, uint32(len(alike)))]
	if sequitur.IsRule(symbol) {
		m.stand(rank, m.rules[sequitur.RuleOf(symbol)].last, aRule)
	} else {
		m.stand(rank, rank, aTerminal)
	}
	return symbol
}

// find returns the rank of the terminal that a symbol begins with, and its place among those that
// begin with it. The next rank is that of a new terminal.
func (m *quickModel) find(symbol uint32) (rank, place uint32) {
	if sequitur.IsRule(symbol) {
		r := m.rules[sequitur.RuleOf(symbol)]
		return r.first, r.place
	}
	if rank, ok := m.rankOf[symbol]; ok {
		return rank, 0
	}
	return uint32(len(m.beginning)), 0
}

// addTerminal codes the value of a new terminal as model.newTerminal does.
func (m *quickModel) addTerminal(value uint32) {
	far := m.number(hash(uint64(newValue), 0), fold((value-m.value-1)&sequitur.MaxTerminal),
		sequitur.MaxTerminal+1)
	m.value = (m.value + 1 + unfold(far)) & sequitur.MaxTerminal
	m.rankOf[m.value] = uint32(len(m.beginning))
	m.beginning = append(m.beginning, []uint32{m.value})
}

// number codes a number below n: its length in bits, then its bits below the first.
func (m *quickModel) number(about uint64, v, n uint32) uint32 {
	if n == 1 {
		return 0
	}
	length := m.length(about, uint32(bits.Len32(v)), uint32(bits.Len32(n-1)))
	if length < 2 {
		return length
	}
	return min(1<<(length-1)|m.bits(hash(about, uint64(length)), v, length-1), n-1)
}

// length codes a length up to the longest: short ones each by whether there is a longer one, so
// that what was learned stays when the longest grows.
func (m *quickModel) length(about uint64, length, longest uint32) uint32 {
	const short = 4
	if longest >= short {
		return min(m.bits(about, length, uint32(bits.Len32(longest))), longest)
	}
	m.decide(about)
	l := uint32(0)
	for l < longest && m.flag(1+l, l < length) {
		l++
	}
	return l
}

// bits codes the lowest bits of a number, the highest of them first: so many of them together as a
// line has chances for.
func (m *quickModel) bits(about uint64, v, width uint32) uint32 {
	const together = 4
	read, member := uint32(0), uint32(1)
	for i := range width {
		if i%together == 0 {
			m.decide(hash(about, uint64(i)<<32|uint64(read)))
			member = 1
		}
		bit := m.code(member, v>>(width-1-i)&1)
		member = member<<1 | bit
		read = read<<1 | bit
	}
	return read
}

package cfg

import (
	"math/bits"
	"slices"
)

// A form says what is known of a value.
type form uint8

const (
	symbolic form = iota // the low bits of a symbol plus a displacement, zero-extended
	constant             // off
	scaled               // index * scale
	address              // base + off + index * scale: where an element of a table lies
	element              // what memory holds there
	target               // element + base + anchor: the jump target that an element of a relative table stands for
)

// A value is what the machine knows of the contents of a register or of memory. In the forms with
// an index, the index is the symbolic value (sym, shift, bits); base and anchorBase are symbols, 0
// for none.
type value struct {
	form   form
	bits   uint8 // symbolic: how many low bits; 64 for all
	dirty  bool  // the bits above are not zero but unknown
	signed bool  // element: sign-extended
	scale  uint8
	size   uint8 // element: bytes
	sym    int32
	base   int32
	off    int64
	shift  int64

	anchorBase int32
	anchor     int64
}

func number(n uint64) value { return value{form: constant, off: int64(n)} }

// isWhole says whether v is what a symbol stands for, all 64 bits of it.
func (v value) isWhole() bool { return v.form == symbolic && v.off == 0 && v.bits == 64 && !v.dirty }

// pointee returns the element of a table of that many bytes that lies at the address v.
func (v value) pointee(size uint8) (value, bool) {
	if v.form != address && v.form != scaled || size > 8 {
		return value{}, false
	}
	v.form, v.size = element, size
	return v, true
}

// index returns the index of a value that has one.
func (v value) index() value { return value{bits: v.bits, sym: v.sym, off: v.shift} }

// withIndex returns v with the symbolic value x as its index.
func (v value) withIndex(x value) value {
	v.sym, v.shift, v.bits = x.sym, x.off, x.bits
	return v
}

// A source says where a symbol comes from.
type source uint8

const (
	computed source = iota // an operation that is not modelled
	initial                // the contents of a register at the start
	loaded                 // memory, of a pointer's size
	result                 // what a call returned, or a system call
	named                  // another value, given a name so that it can be added to
	chosen                 // one of two values
)

// A symbol is an unknown number that a value may be made of.
type symbol struct {
	source source
	reg    int8  // initial: the register
	value  value // named: its value; chosen: one of the two
	other  value // chosen: the other
	slot   slot  // loaded: from where
	reread bool  // memory that others may write was taken to hold it once more
	stored bool  // loaded from what has been stored in the frame since the run began, in a way that is not followed
}

// A slot is a place in memory: an absolute address, or a displacement from a symbol.
type slot struct {
	base int32 // symbol; 0 for an absolute address
	disp int64
	size uint8
}

// A bound says that the low bits of sym + off, as many as bits, are at most max.
type bound struct {
	sym      int32
	off      int64
	bits     uint8
	max      uint64
	unset    uint64 // bits that a mask has cleared
	compared bool   // a comparison found it, not a mask or a shift
	negative bool   // the value may be less than nought, too
	check    check
}

// fresh returns a value of which nothing is known.
func (m *machine) fresh(from source) value {
	m.symbols = append(m.symbols, symbol{source: from, reg: -1})
	return value{sym: int32(len(m.symbols) - 1), bits: 64}
}

// name returns a symbol that stands for v.
func (m *machine) name(v value) value {
	if v.form != symbolic || v.dirty {
		return m.fresh(computed)
	}
	for i := range m.symbols {
		if s := &m.symbols[i]; s.source == named && s.value == v {
			return value{sym: int32(i), bits: 64}
		}
	}
	w := m.fresh(named)
	m.symbols[w.sym].value = v
	return w
}

// narrow returns the low bits of v, zero-extended.
func (m *machine) narrow(v value, bits uint8) value {
	if bits == 64 {
		if v.dirty {
			return m.fresh(computed)
		}
		return v
	}
	switch v.form {
	case symbolic:
		if v.dirty && bits > v.bits {
			return m.fresh(computed)
		}
		v.bits, v.dirty = min(v.bits, bits), false
		return v
	case constant:
		v.off &= 1<<bits - 1
		return v
	case scaled:
		if bits == 32 {
			return v
		}
	case element:
		if v.size*8 <= bits && !v.signed || v.size*8 == bits {
			v.signed = false
			return v
		}
	}
	return value{sym: m.fresh(computed).sym, bits: bits}
}

// extend returns v of that many bits, sign-extended. A bounded index is too small for its sign to
// matter.
func (m *machine) extend(v value, bits uint8) value {
	switch v = m.narrow(v, bits); v.form {
	case constant:
		up := 64 - bits
		v.off = v.off << up >> up
	case element:
		v.signed = v.size*8 == bits
	case symbolic:
		if bits < 32 {
			return m.fresh(computed)
		}
	}
	return v
}

// sum returns a + b in that many bits.
func (m *machine) sum(a, b value, bits uint8) value {
	if a.form == constant || a.form == symbolic && b.form > constant {
		a, b = b, a
	}
	if to, ok := m.targetOf(a, b, bits); ok {
		return to
	}
	if to, ok := m.targetOf(b, a, bits); ok {
		return to
	}
	switch {
	case a.form == constant:
		return m.narrow(number(uint64(a.off+b.off)), bits)
	case a.form == symbolic && b.form == constant:
		return m.displaced(a, b.off, bits)
	case bits != 64:
		return value{sym: m.fresh(computed).sym, bits: bits}
	case b.form == constant:
		return m.sumConstant(a, b.off)
	case b.form == symbolic && b.bits == 64 && !b.dirty:
		return m.sumSymbol(a, b)
	}
	return m.fresh(computed)
}

// targetOf returns what a word and an anchor add up to where the word is a distance from there that lies behind it: the
// target of a switch's table whose index is a number. All of the table is taken for it.
func (m *machine) targetOf(word, anchor value, bits uint8) (to value, ok bool) {
	from := &m.symbols[word.sym]
	isWord := word.form == symbolic && word.off == 0 && word.bits == 32 && from.source == loaded && from.slot.size == 4 && from.slot.base != frameSymbol
	isAnchor := anchor.form == constant && from.slot.base == 0 || anchor.form == symbolic && anchor.bits == 64 && !anchor.dirty && anchor.sym == from.slot.base
	const most = 4 * maxEntries
	if behind := from.slot.disp - anchor.off; bits != 64 || !isWord || !isAnchor || behind < 0 || behind >= most || behind%4 != 0 {
		return value{}, false
	}
	base := from.slot.base
	to = value{form: target, scale: 4, size: 4, signed: true, base: base, off: from.slot.disp, anchorBase: base, anchor: anchor.off}
	return to.withIndex(m.fresh(computed)), true
}

func (m *machine) displaced(a value, off int64, bits uint8) value {
	if off == 0 {
		return m.narrow(a, bits)
	}
	if a.dirty || a.bits < bits {
		a = m.name(a)
	}
	a.off += off
	a.bits = bits
	return a
}

func (m *machine) sumConstant(a value, off int64) value {
	switch {
	case off == 0:
		return a
	case a.form == scaled:
		a.form, a.off = address, off
		return a
	case a.form == address:
		a.off += off
		return a
	case a.form == element, a.form == target:
		a.form = target
		a.anchor += off
		return a
	}
	return m.fresh(computed)
}

// sumSymbol adds a pointer: the base of the table that a is an index of, or what its elements are
// relative to.
func (m *machine) sumSymbol(a, b value) value {
	switch {
	case a.form == scaled || a.form == address && a.base == 0:
		a.form, a.base = address, b.sym
		a.off += b.off
		return a
	case a.form == element, a.form == target && a.anchorBase == 0:
		a.form, a.anchorBase = target, b.sym
		a.anchor += b.off
		return a
	}
	return m.fresh(computed)
}

// times returns v * scale. What is no plain index becomes one: an element of a table of numbers,
// for one.
func (m *machine) times(v value, scale uint8) value {
	switch {
	case scale == 1:
		return v
	case v.form == constant:
		return number(uint64(v.off) * uint64(scale))
	case v.form == element && !v.signed:
		v = value{sym: m.fresh(computed).sym, bits: min(64, v.size*8)}
	case v.form != symbolic || v.dirty:
		v = m.fresh(computed)
	}
	return value{form: scaled, scale: scale}.withIndex(v)
}

// indexed returns base + index with the index not scaled, as a byte table and a scaled index have
// it.
func (m *machine) indexed(base, index value) value {
	if base.form == constant && index.form == symbolic && !index.dirty {
		return value{form: address, scale: 1, off: base.off}.withIndex(index)
	}
	if index.form == constant && base.form == symbolic && !base.dirty {
		return value{form: address, scale: 1, off: index.off}.withIndex(base)
	}
	return m.sum(base, index, 64)
}

// limited returns an unknown value of at most most.
func (m *machine) limited(most uint64) value {
	v := m.fresh(computed)
	m.bounds = append(m.bounds, bound{sym: v.sym, bits: 64, max: most, check: noCheck})
	return v
}

// masked returns an unknown value that has no bits but those of a mask.
func (m *machine) masked(mask uint64) value {
	v := m.limited(mask)
	m.bounds[len(m.bounds)-1].unset = ^mask
	return v
}

// maskOf returns the bits that a value may have, if that is known of all of them.
func (m *machine) maskOf(v value) (mask uint64, ok bool) {
	if v.form == constant {
		return uint64(v.off), true
	}
	if v.form != symbolic || v.dirty {
		return 0, false
	}
	if b, ok := m.boundOf(v); ok {
		return (1<<min(bits.Len64(b.max), int(v.bits)) - 1) &^ b.unset, true
	}
	most, ok := typeBound(v)
	return most, ok
}

// maxNames bounds how many names of values of named values are looked through.
const maxNames = 8

// boundOf returns the least bound on the symbolic value v.
func (m *machine) boundOf(v value) (bound, bool) {
	return m.boundBelow(v, 64)
}

// indexBound is boundOf for the index of a table, which is below 2^32: a bound on its low 32 bits is one on it, and a
// difference of as many bits has not gone below zero.
func (m *machine) indexBound(v value) (bound, bool) {
	return m.boundBelow(v, 32)
}

// boundBelow returns the least bound on the symbolic value v, which is below 2^width.
func (m *machine) boundBelow(v value, width uint8) (bound, bool) {
	off := int64(0) // to be added to the bound of what v is made of
	for range maxNames {
		if best, ok := m.leastBound(v, width); ok && int64(best.max)+off >= 0 {
			best.max = uint64(int64(best.max) + off)
			if off != 0 {
				best.unset, best.negative = 0, off < 0
			}
			if best.check.block >= 0 {
				best.check.bias += off
			}
			return best, true
		}
		s := &m.symbols[v.sym]
		if s.source != named || v.off < 0 && (width > 32 || v.bits < 32) {
			break
		}
		off += v.off
		v = s.value
	}
	return bound{}, false
}

// leastBound is boundBelow, but that it does not look at what v is made of.
func (m *machine) leastBound(v value, width uint8) (best bound, ok bool) {
	unset := uint64(0)
	for _, b := range m.bounds {
		if b.sym != v.sym || b.off != v.off || b.bits < min(v.bits, width) {
			continue
		}
		unset |= b.unset
		if !ok || b.max < best.max {
			best, ok = b, true
		}
	}
	best.unset = unset
	return best, ok
}

// typeBound returns the greatest number that fits in v when that has less than 32 bits: a bound on
// the index of a table, though seldom that of the table's length.
func typeBound(v value) (uint64, bool) {
	if v.bits > 16 {
		return 0, false
	}
	return 1<<v.bits - 1, true
}

// slotAt returns what is known of that place in memory, or a new symbol for it.
func (m *machine) slotAt(at slot) value {
	if i := slices.IndexFunc(m.memory, func(c cell) bool { return c.slot == at }); i >= 0 {
		v := m.memory[i].value
		if v.form == symbolic && at.base != frameSymbol {
			m.symbols[v.sym].reread = true
		}
		return v
	}
	v := m.fresh(loaded)
	m.symbols[v.sym].slot, m.symbols[v.sym].stored = at, at.base == frameSymbol && m.hasStored(at)
	if at.size < 8 {
		v.bits = at.size * 8
	}
	m.memory = append(m.memory, cell{slot: at, value: v})
	return v
}

// hasStored says whether a place in the frame may have been written since the run began.
func (m *machine) hasStored(at slot) bool {
	return m.storedAnywhere || slices.ContainsFunc(m.stored, at.overlaps)
}

// overlaps says whether two places of the same base have a byte in common.
func (at slot) overlaps(other slot) bool {
	return other.disp < at.disp+int64(at.size) && at.disp < other.disp+int64(other.size)
}

package absint

import "math/bits"

// A Bound says that the low bits of sym + off, as many as bits, are at most max.
type Bound struct {
	Sym      int32
	off      int64
	bits     uint8
	Max      uint64
	Unset    uint64 // bits that a mask has cleared
	Compared bool   // a comparison found it, not a mask or a shift
	Negative bool   // the value may be less than 0, too
	Check    Check
}

// bounds are those found in a run.
type bounds []Bound

// maxNames bounds how many names of values of named values are looked through.
const maxNames = 8

// below returns the least bound on the symbolic value v, which is below 2^width.
func (l bounds) below(symbols Symbols, v Value, width uint8) (Bound, bool) {
	off := int64(0) // to be added to the bound of what v is made of
	for range maxNames {
		if best, ok := l.least(v, width); ok && int64(best.Max)+off >= 0 {
			best.Max = uint64(int64(best.Max) + off)
			if off != 0 {
				best.Unset, best.Negative = 0, off < 0
			}
			if best.Check.Block >= 0 {
				best.Check.Bias += off
			}
			return best, true
		}
		s := &symbols[v.Sym]
		if s.Source != Named || v.Off < 0 && (width > 32 || v.Bits < 32) {
			break
		}
		off += v.Off
		v = s.Value
	}
	return Bound{}, false
}

// least is below, but that it does not look at what v is made of.
func (l bounds) least(v Value, width uint8) (best Bound, ok bool) {
	unset := uint64(0)
	for _, b := range l {
		if b.Sym != v.Sym || b.off != v.Off || b.bits < min(v.Bits, width) {
			continue
		}
		unset |= b.Unset
		if !ok || b.Max < best.Max {
			best, ok = b, true
		}
	}
	best.Unset = unset
	return best, ok
}

// TypeBound returns the greatest number that fits in v when that has less than 32 bits: a bound on
// the index of a table, though seldom that of the table's length.
func TypeBound(v Value) (uint64, bool) {
	if v.Bits > 16 {
		return 0, false
	}
	return 1<<v.Bits - 1, true
}

// limited returns an unknown value of at most most.
func (m *Machine) limited(most uint64) Value {
	v := m.Symbols.Fresh(Computed)
	m.bounds = append(m.bounds, Bound{Sym: v.Sym, bits: 64, Max: most, Check: NoCheck})
	return v
}

// masked returns an unknown value that has no bits but those of a mask.
func (m *Machine) masked(mask uint64) Value {
	v := m.limited(mask)
	m.bounds[len(m.bounds)-1].Unset = ^mask
	return v
}

// maskOf returns the bits that a value may have, if that is known of all of them.
func (m *Machine) maskOf(v Value) (mask uint64, ok bool) {
	if v.Form == Constant {
		return uint64(v.Off), true
	}
	if v.Form != Symbolic || v.Dirty {
		return 0, false
	}
	if b, ok := m.boundOf(v); ok {
		return (1<<min(bits.Len64(b.Max), int(v.Bits)) - 1) &^ b.Unset, true
	}
	most, ok := TypeBound(v)
	return most, ok
}

// boundOf returns the least bound on the symbolic value v.
func (m *Machine) boundOf(v Value) (Bound, bool) {
	return m.bounds.below(m.Symbols, v, 64)
}

// IndexBound is boundOf for the index of a table, which is below 2^32: a bound on its low 32 bits
// is one on it, and a difference of as many bits has not gone below zero.
func (m *Machine) IndexBound(v Value) (Bound, bool) {
	return m.bounds.below(m.Symbols, v, 32)
}

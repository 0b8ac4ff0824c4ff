package absint

import (
	"math/bits"
	"slices"
)

// A Form says what is known of a value.
type Form uint8

const (
	Symbolic Form = iota // the low bits of a symbol plus a displacement, zero-extended
	Constant             // off
	Scaled               // index * scale
	Address              // base + off + index * scale: where an element of a table lies
	Element              // what memory holds there
	// element + base + anchor: the jump target that an element of a relative table stands for
	Target
)

// A Value is what the machine knows of the contents of a register or of memory. In the forms with
// an index, the index is the symbolic value (sym, shift, bits); base and anchorBase are symbols, 0
// for none.
type Value struct {
	Form   Form
	Bits   uint8 // symbolic: how many low bits; 64 for all
	Dirty  bool  // the bits above are not zero but unknown
	Signed bool  // element: sign-extended
	Scale  uint8
	Size   uint8 // element: bytes
	Sym    int32
	Base   int32
	Off    int64
	Shift  int64

	AnchorBase int32
	Anchor     int64
}

// Number is the value that is a constant.
func Number(n uint64) Value { return Value{Form: Constant, Off: int64(n)} }

// IsWhole says whether v is what a symbol stands for, all 64 bits of it.
func (v Value) IsWhole() bool {
	return v.Form == Symbolic && v.Off == 0 && v.Bits == 64 && !v.Dirty
}

// Pointee returns the element of a table of that many bytes that lies at the address v.
func (v Value) Pointee(size uint8) (Value, bool) {
	if v.Form != Address && v.Form != Scaled || size > 8 {
		return Value{}, false
	}
	v.Form, v.Size = Element, size
	return v, true
}

// Index returns the index of a value that has one.
func (v Value) Index() Value { return Value{Bits: v.Bits, Sym: v.Sym, Off: v.Shift} }

// withIndex returns v with the symbolic value x as its index.
func (v Value) withIndex(x Value) Value {
	v.Sym, v.Shift, v.Bits = x.Sym, x.Off, x.Bits
	return v
}

// A Source says where a symbol comes from.
type Source uint8

const (
	Computed Source = iota // an operation that is not modelled
	Initial                // the contents of a register at the start
	Loaded                 // memory, of a pointer's size
	Result                 // what a call returned, or a system call
	Named                  // another value, given a name so that it can be added to
	Chosen                 // one of two values
)

// An Unknown is a number that a value may be made of.
type Unknown struct {
	Source Source
	Reg    int8  // initial: the register
	Value  Value // named: its value; chosen: one of the two
	Other  Value // chosen: the other
	Slot   Slot  // loaded: from where
	Reread bool  // memory that others may write was taken to hold it once more
	// loaded from what has been stored in the frame since the run began, in a way that is not
	// followed
	Stored bool
}

// A Slot is a place in memory: an absolute address, or a displacement from a symbol.
type Slot struct {
	Base int32 // symbol; 0 for an absolute address
	Disp int64
	Size uint8
}

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

// Fresh returns a value of which nothing is known.
func (m *Machine) Fresh(from Source) Value {
	m.Symbols = append(m.Symbols, Unknown{Source: from, Reg: -1})
	return Value{Sym: int32(len(m.Symbols) - 1), Bits: 64}
}

// name returns a symbol that stands for v.
func (m *Machine) name(v Value) Value {
	if v.Form != Symbolic || v.Dirty {
		return m.Fresh(Computed)
	}
	for i := range m.Symbols {
		if s := &m.Symbols[i]; s.Source == Named && s.Value == v {
			return Value{Sym: int32(i), Bits: 64}
		}
	}
	w := m.Fresh(Named)
	m.Symbols[w.Sym].Value = v
	return w
}

// narrow returns the low bits of v, zero-extended.
func (m *Machine) narrow(v Value, bits uint8) Value {
	if bits == 64 {
		if v.Dirty {
			return m.Fresh(Computed)
		}
		return v
	}
	switch v.Form {
	case Symbolic:
		if v.Dirty && bits > v.Bits {
			return m.Fresh(Computed)
		}
		v.Bits, v.Dirty = min(v.Bits, bits), false
		return v
	case Constant:
		v.Off &= 1<<bits - 1
		return v
	case Scaled:
		if bits == 32 {
			return v
		}
	case Element:
		if v.Size*8 <= bits && !v.Signed || v.Size*8 == bits {
			v.Signed = false
			return v
		}
	}
	return Value{Sym: m.Fresh(Computed).Sym, Bits: bits}
}

// extend returns v of that many bits, sign-extended. A bounded index is too small for its sign to
// matter.
func (m *Machine) extend(v Value, bits uint8) Value {
	switch v = m.narrow(v, bits); v.Form {
	case Constant:
		up := 64 - bits
		v.Off = v.Off << up >> up
	case Element:
		v.Signed = v.Size*8 == bits
	case Symbolic:
		if bits < 32 {
			return m.Fresh(Computed)
		}
	}
	return v
}

// sum returns a + b in that many bits.
func (m *Machine) sum(a, b Value, bits uint8) Value {
	if a.Form == Constant || a.Form == Symbolic && b.Form > Constant {
		a, b = b, a
	}
	if to, ok := m.targetOf(a, b, bits); ok {
		return to
	}
	if to, ok := m.targetOf(b, a, bits); ok {
		return to
	}
	switch {
	case a.Form == Constant:
		return m.narrow(Number(uint64(a.Off+b.Off)), bits)
	case a.Form == Symbolic && b.Form == Constant:
		return m.displaced(a, b.Off, bits)
	case bits != 64:
		return Value{Sym: m.Fresh(Computed).Sym, Bits: bits}
	case b.Form == Constant:
		return m.sumConstant(a, b.Off)
	case b.Form == Symbolic && b.Bits == 64 && !b.Dirty:
		return m.sumSymbol(a, b)
	}
	return m.Fresh(Computed)
}

// targetOf returns what a word and an anchor add up to where the word is a distance from there that
// lies behind it: the target of a switch's table whose index is a number. All of the table is taken
// for it.
func (m *Machine) targetOf(word, anchor Value, bits uint8) (to Value, ok bool) {
	from := &m.Symbols[word.Sym]
	isWord := word.Form == Symbolic && word.Off == 0 && word.Bits == 32 && from.Source == Loaded &&
		from.Slot.Size == 4 && from.Slot.Base != FrameSymbol
	isAnchor := anchor.Form == Constant && from.Slot.Base == 0 || anchor.Form == Symbolic &&
		anchor.Bits == 64 && !anchor.Dirty && anchor.Sym == from.Slot.Base
	const most = 4 * MaxEntries
	if behind := from.Slot.Disp - anchor.Off; bits != 64 || !isWord || !isAnchor || behind < 0 ||
		behind >= most || behind%4 != 0 {
		return Value{}, false
	}
	base := from.Slot.Base
	to = Value{Form: Target, Scale: 4, Size: 4, Signed: true, Base: base, Off: from.Slot.Disp,
		AnchorBase: base, Anchor: anchor.Off}
	return to.withIndex(m.Fresh(Computed)), true
}

func (m *Machine) displaced(a Value, off int64, bits uint8) Value {
	if off == 0 {
		return m.narrow(a, bits)
	}
	if a.Dirty || a.Bits < bits {
		a = m.name(a)
	}
	a.Off += off
	a.Bits = bits
	return a
}

func (m *Machine) sumConstant(a Value, off int64) Value {
	switch {
	case off == 0:
		return a
	case a.Form == Scaled:
		a.Form, a.Off = Address, off
		return a
	case a.Form == Address:
		a.Off += off
		return a
	case a.Form == Element, a.Form == Target:
		a.Form = Target
		a.Anchor += off
		return a
	}
	return m.Fresh(Computed)
}

// sumSymbol adds a pointer: the base of the table that a is an index of, or what its elements are
// relative to.
func (m *Machine) sumSymbol(a, b Value) Value {
	switch {
	case a.Form == Scaled || a.Form == Address && a.Base == 0:
		a.Form, a.Base = Address, b.Sym
		a.Off += b.Off
		return a
	case a.Form == Element, a.Form == Target && a.AnchorBase == 0:
		a.Form, a.AnchorBase = Target, b.Sym
		a.Anchor += b.Off
		return a
	}
	return m.Fresh(Computed)
}

// times returns v * scale. What is no plain index becomes one: an element of a table of numbers,
// for one.
func (m *Machine) times(v Value, scale uint8) Value {
	switch {
	case scale == 1:
		return v
	case v.Form == Constant:
		return Number(uint64(v.Off) * uint64(scale))
	case v.Form == Element && !v.Signed:
		v = Value{Sym: m.Fresh(Computed).Sym, Bits: min(64, v.Size*8)}
	case v.Form != Symbolic || v.Dirty:
		v = m.Fresh(Computed)
	}
	return Value{Form: Scaled, Scale: scale}.withIndex(v)
}

// indexed returns base + index with the index not scaled, as a byte table and a scaled index have
// it.
func (m *Machine) indexed(base, index Value) Value {
	if base.Form == Constant && index.Form == Symbolic && !index.Dirty {
		return Value{Form: Address, Scale: 1, Off: base.Off}.withIndex(index)
	}
	if index.Form == Constant && base.Form == Symbolic && !base.Dirty {
		return Value{Form: Address, Scale: 1, Off: index.Off}.withIndex(base)
	}
	return m.sum(base, index, 64)
}

// limited returns an unknown value of at most most.
func (m *Machine) limited(most uint64) Value {
	v := m.Fresh(Computed)
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

// maxNames bounds how many names of values of named values are looked through.
const maxNames = 8

// boundOf returns the least bound on the symbolic value v.
func (m *Machine) boundOf(v Value) (Bound, bool) {
	return m.boundBelow(v, 64)
}

// IndexBound is boundOf for the index of a table, which is below 2^32: a bound on its low 32 bits
// is one on it, and a difference of as many bits has not gone below zero.
func (m *Machine) IndexBound(v Value) (Bound, bool) {
	return m.boundBelow(v, 32)
}

// boundBelow returns the least bound on the symbolic value v, which is below 2^width.
func (m *Machine) boundBelow(v Value, width uint8) (Bound, bool) {
	off := int64(0) // to be added to the bound of what v is made of
	for range maxNames {
		if best, ok := m.leastBound(v, width); ok && int64(best.Max)+off >= 0 {
			best.Max = uint64(int64(best.Max) + off)
			if off != 0 {
				best.Unset, best.Negative = 0, off < 0
			}
			if best.Check.Block >= 0 {
				best.Check.Bias += off
			}
			return best, true
		}
		s := &m.Symbols[v.Sym]
		if s.Source != Named || v.Off < 0 && (width > 32 || v.Bits < 32) {
			break
		}
		off += v.Off
		v = s.Value
	}
	return Bound{}, false
}

// leastBound is boundBelow, but that it does not look at what v is made of.
func (m *Machine) leastBound(v Value, width uint8) (best Bound, ok bool) {
	unset := uint64(0)
	for _, b := range m.bounds {
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

// SlotAt returns what is known of that place in memory, or a new symbol for it.
func (m *Machine) SlotAt(at Slot) Value {
	if i := slices.IndexFunc(m.Memory, func(c Cell) bool { return c.At == at }); i >= 0 {
		v := m.Memory[i].Value
		if v.Form == Symbolic && at.Base != FrameSymbol {
			m.Symbols[v.Sym].Reread = true
		}
		return v
	}
	v := m.Fresh(Loaded)
	m.Symbols[v.Sym].Slot, m.Symbols[v.Sym].Stored = at, at.Base == FrameSymbol && m.hasStored(at)
	if at.Size < 8 {
		v.Bits = at.Size * 8
	}
	m.Memory = append(m.Memory, Cell{At: at, Value: v})
	return v
}

// hasStored says whether a place in the frame may have been written since the run began.
func (m *Machine) hasStored(at Slot) bool {
	return m.storedAnywhere || slices.ContainsFunc(m.stored, at.overlaps)
}

// overlaps says whether two places of the same base have a byte in common.
func (at Slot) overlaps(other Slot) bool {
	return other.Disp < at.Disp+int64(at.Size) && at.Disp < other.Disp+int64(other.Size)
}

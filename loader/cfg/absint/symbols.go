package absint

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

// Symbols are the numbers that the values of one run are made of, by Value.Sym; those before
// FrameSymbol+1 are reserved. What is computed from values depends on them alone.
type Symbols []Unknown

// Fresh returns a value of which nothing is known.
func (s *Symbols) Fresh(from Source) Value {
	*s = append(*s, Unknown{Source: from, Reg: -1})
	return Value{Sym: int32(len(*s) - 1), Bits: 64}
}

// name returns a symbol that stands for v.
func (s *Symbols) name(v Value) Value {
	if v.Form != Symbolic || v.Dirty {
		return s.Fresh(Computed)
	}
	for i := range *s {
		if known := &(*s)[i]; known.Source == Named && known.Value == v {
			return Value{Sym: int32(i), Bits: 64}
		}
	}
	w := s.Fresh(Named)
	(*s)[w.Sym].Value = v
	return w
}

// narrow returns the low bits of v, zero-extended.
func (s *Symbols) narrow(v Value, bits uint8) Value {
	if bits == 64 {
		if v.Dirty {
			return s.Fresh(Computed)
		}
		return v
	}
	switch v.Form {
	case Symbolic:
		if v.Dirty && bits > v.Bits {
			return s.Fresh(Computed)
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
	return Value{Sym: s.Fresh(Computed).Sym, Bits: bits}
}

// extend returns v of that many bits, sign-extended. A bounded index is too small for its sign to
// matter.
func (s *Symbols) extend(v Value, bits uint8) Value {
	switch v = s.narrow(v, bits); v.Form {
	case Constant:
		up := 64 - bits
		v.Off = v.Off << up >> up
	case Element:
		v.Signed = v.Size*8 == bits
	case Symbolic:
		if bits < 32 {
			return s.Fresh(Computed)
		}
	}
	return v
}

// sum returns a + b in that many bits.
func (s *Symbols) sum(a, b Value, bits uint8) Value {
	if a.Form == Constant || a.Form == Symbolic && b.Form > Constant {
		a, b = b, a
	}
	if to, ok := s.targetOf(a, b, bits); ok {
		return to
	}
	if to, ok := s.targetOf(b, a, bits); ok {
		return to
	}
	switch {
	case a.Form == Constant:
		return s.narrow(Number(uint64(a.Off+b.Off)), bits)
	case a.Form == Symbolic && b.Form == Constant:
		return s.displaced(a, b.Off, bits)
	case bits != 64:
		return Value{Sym: s.Fresh(Computed).Sym, Bits: bits}
	case b.Form == Constant:
		return s.sumConstant(a, b.Off)
	case b.Form == Symbolic && b.Bits == 64 && !b.Dirty:
		return s.sumSymbol(a, b)
	}
	return s.Fresh(Computed)
}

// targetOf returns what a word and an anchor add up to where the word is a distance from there that
// lies behind it: the target of a switch's table whose index is a number. All of the table is taken
// for it.
func (s *Symbols) targetOf(word, anchor Value, bits uint8) (to Value, ok bool) {
	from := &(*s)[word.Sym]
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
	return to.withIndex(s.Fresh(Computed)), true
}

func (s *Symbols) displaced(a Value, off int64, bits uint8) Value {
	if off == 0 {
		return s.narrow(a, bits)
	}
	if a.Dirty || a.Bits < bits {
		a = s.name(a)
	}
	a.Off += off
	a.Bits = bits
	return a
}

func (s *Symbols) sumConstant(a Value, off int64) Value {
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
	return s.Fresh(Computed)
}

// sumSymbol adds a pointer: the base of the table that a is an index of, or what its elements are
// relative to.
func (s *Symbols) sumSymbol(a, b Value) Value {
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
	return s.Fresh(Computed)
}

// times returns v * scale. What is no plain index becomes one: an element of a table of numbers,
// for one.
func (s *Symbols) times(v Value, scale uint8) Value {
	switch {
	case scale == 1:
		return v
	case v.Form == Constant:
		return Number(uint64(v.Off) * uint64(scale))
	case v.Form == Element && !v.Signed:
		v = Value{Sym: s.Fresh(Computed).Sym, Bits: min(64, v.Size*8)}
	case v.Form != Symbolic || v.Dirty:
		v = s.Fresh(Computed)
	}
	return Value{Form: Scaled, Scale: scale}.withIndex(v)
}

// indexed returns base + index with the index not scaled, as a byte table and a scaled index have
// it.
func (s *Symbols) indexed(base, index Value) Value {
	if base.Form == Constant && index.Form == Symbolic && !index.Dirty {
		return Value{Form: Address, Scale: 1, Off: base.Off}.withIndex(index)
	}
	if index.Form == Constant && base.Form == Symbolic && !base.Dirty {
		return Value{Form: Address, Scale: 1, Off: index.Off}.withIndex(base)
	}
	return s.sum(base, index, 64)
}

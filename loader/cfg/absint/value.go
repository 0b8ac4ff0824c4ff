package absint

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
// an index, the index is the symbolic value (Sym, Shift, Bits); Base and AnchorBase are symbols, 0
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

package location

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The operations (DWARF 5, section 7.7.1) that have a meaning of their own here. Literals and
// registers are the first of 32 each.
const (
	Addr          = 0x03
	Deref         = 0x06
	Const1u       = 0x08
	Constu        = 0x10
	Consts        = 0x11
	Dup           = 0x12
	Drop          = 0x13
	Over          = 0x14
	Pick          = 0x15
	Swap          = 0x16
	Rot           = 0x17
	Abs           = 0x19
	And           = 0x1a
	Div           = 0x1b
	Minus         = 0x1c
	Mod           = 0x1d
	Mul           = 0x1e
	Neg           = 0x1f
	Not           = 0x20
	Or            = 0x21
	Plus          = 0x22
	PlusUconst    = 0x23
	Shl           = 0x24
	Shr           = 0x25
	Shra          = 0x26
	Xor           = 0x27
	Eq            = 0x29
	Ge            = 0x2a
	Gt            = 0x2b
	Le            = 0x2c
	Lt            = 0x2d
	Ne            = 0x2e
	Lit0          = 0x30
	Reg0          = 0x50
	Breg0         = 0x70
	Regx          = 0x90
	Fbreg         = 0x91
	Bregx         = 0x92
	Piece         = 0x93
	DerefSize     = 0x94
	Nop           = 0x96
	CFA           = 0x9c
	ImplicitValue = 0x9e
	StackValue    = 0x9f
	Addrx         = 0xa1
	Constx        = 0xa2
	EntryValue    = 0xa3
	Convert       = 0xa8

	gnuEntryValue = 0xf3 // those that compilers wrote before DWARF 5
	gnuConvert    = 0xf7
	gnuAddrx      = 0xfb
	gnuConstx     = 0xfc
	literals      = 32
)

// The registers by DWARF's numbers: general ones are the first, 16 vector registers begin at
// Vectors.
const (
	RBP      = 6
	RSP      = 7
	Generals = 16
	Vectors  = 17
)

// An Op is an operation. Of literals and registers, and of what has an operand in one of several
// forms, Code is the first of its kind: Constu and Consts for all constants, Reg0 and Breg0 with
// the register in Register, Addrx, Constx, EntryValue and Convert also for those that compilers
// wrote before DWARF 5 had them.
type Op struct {
	Code     uint8
	Register int    // DWARF's number: of Reg0 and Breg0
	N        int64  // the operand, or the number that a constant is
	Block    []byte // of ImplicitValue and EntryValue; shared
}

// errEnd: the operand of an operation is missing.
var errEnd = errors.New("the expression ends within an operation")

// Next splits the first operation off an expression that is not empty. What has a meaning that is
// not known here is an error.
func Next(code []byte) (op Op, rest []byte, err error) {
	r := Reader{Rest: code[1:]}
	c := code[0]
	op.Code = c
	switch {
	case Lit0 <= c && c < Lit0+literals:
		op.Code, op.N = Constu, int64(c-Lit0)
	case Reg0 <= c && c < Reg0+literals:
		op.Code, op.Register = Reg0, int(c-Reg0)
	case Breg0 <= c && c < Breg0+literals:
		op.Code, op.Register, op.N = Breg0, int(c-Breg0), r.Signed()
	case Const1u <= c && c < Constu:
		op.Code, op.N = Constu+(c-Const1u)%2, r.constant(c-Const1u)
	case c == Regx:
		op.Code, op.Register = Reg0, r.register()
	case c == Bregx:
		op.Code, op.Register, op.N = Breg0, r.register(), r.Signed()
	case c == Addr:
		op.N = r.Fixed(8)
	case c == Consts, c == Fbreg:
		op.N = r.Signed()
	case c == Pick, c == DerefSize:
		op.N = r.Fixed(1)
	case c == Constu, c == PlusUconst, c == Piece, c == Addrx, c == Constx, c == Convert:
		op.N = r.Unsigned()
	case c == gnuAddrx, c == gnuConstx:
		op.Code, op.N = c-gnuAddrx+Addrx, r.Unsigned()
	case c == gnuConvert:
		op.Code, op.N = Convert, r.Unsigned()
	case c == ImplicitValue, c == EntryValue, c == gnuEntryValue:
		op.Block = r.block()
		if c == gnuEntryValue {
			op.Code = EntryValue
		}
	case Dup <= c && c <= Xor && c != 0x18, Eq <= c && c <= Ne:
	case c == Deref, c == Nop, c == CFA, c == StackValue:
	default:
		return op, nil, fmt.Errorf("operation %#x is not known", c)
	}
	if r.Failed {
		return op, nil, errEnd
	}
	return op, r.Rest, nil
}

// A Reader reads numbers as debug information has them. Once bytes are missing, all are 0.
type Reader struct {
	Rest   []byte
	Failed bool
}

// Take returns the next n bytes, shared.
func (r *Reader) Take(n int) []byte {
	if n < 0 || n > len(r.Rest) {
		r.Failed, r.Rest = true, nil
		return nil
	}
	b := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return b
}

// Fixed reads a number of 1 to 8 bytes.
func (r *Reader) Fixed(size int) int64 {
	var word [8]byte
	copy(word[:], r.Take(size))
	return int64(binary.LittleEndian.Uint64(word[:]))
}

// constant reads a number of 1, 2, 4 or 8 bytes, each without a sign and with one.
func (r *Reader) constant(kind uint8) int64 {
	size := 1 << (kind / 2)
	n := r.Fixed(size)
	if unused := 64 - 8*size; kind%2 == 1 {
		n = n << unused >> unused
	}
	return n
}

// Unsigned reads a number of a variable length (LEB128).
func (r *Reader) Unsigned() int64 {
	n, size := binary.Uvarint(r.Rest)
	if r.Take(size); size <= 0 {
		r.Failed = true
	}
	return int64(n)
}

// Signed reads a number of a variable length that has a sign.
func (r *Reader) Signed() (n int64) {
	for i, c := range r.Rest {
		if i == binary.MaxVarintLen64 {
			break
		}
		n |= int64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if shift := 7 * (i + 1); c&0x40 != 0 && shift < 64 {
				n |= -1 << shift
			}
			r.Take(i + 1)
			return n
		}
	}
	r.Failed = true
	return 0
}

func (r *Reader) register() int {
	n := r.Unsigned()
	if n < 0 || n > 1<<16 {
		r.Failed = true
	}
	return int(n)
}

func (r *Reader) block() []byte {
	n := r.Unsigned()
	if n < 0 || n > int64(len(r.Rest)) {
		r.Failed = true
		return nil
	}
	return r.Take(int(n))
}

// AppendBase appends the operation that gives what a general register, by DWARF's number, and a
// number add up to.
func AppendBase(code []byte, register int, n int64) []byte {
	return appendSigned(append(code, Breg0+uint8(register)), n)
}

// AppendAddress appends the operation that gives a link-time address.
func AppendAddress(code []byte, addr uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(code, Addr), addr)
}

// AppendNumber appends the operation that gives a number.
func AppendNumber(code []byte, n int64) []byte { return appendSigned(append(code, Consts), n) }

func appendSigned(code []byte, n int64) []byte {
	for {
		c := uint8(n & 0x7f)
		if n >>= 7; n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(code, c)
		}
		code = append(code, c|0x80)
	}
}

// AppendExtended appends operations that make of a number what its low bytes are, 1 to 8 of them.
func AppendExtended(code []byte, size int, isSigned bool) []byte {
	if size >= 8 {
		return code
	}
	back := uint8(Shr)
	if isSigned {
		back = Shra
	}
	unused := uint8(64 - 8*size)
	return append(code, Const1u, unused, Shl, Const1u, unused, back)
}

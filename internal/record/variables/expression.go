package variables

import (
	"encoding/binary"

	located "wpptrace/compress/wpp/variables"
)

// general has the hardware's numbers of the general registers, by those of DWARF.
var general = [16]uint8{0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}

// An expression is what one of DWARF says, if it is one register or one sum.
type expression struct {
	located.Place
	isFramed bool // the base is that of the frame
	isCFA    bool // it is the canonical frame address
}

// The operations (DWARF 5, section 7.7.1).
const (
	opAddr       = 0x03
	opConst1u    = 0x08
	opPlusUconst = 0x23
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opFbreg      = 0x91
	opCFA        = 0x9c
	opStackValue = 0x9f

	vectors = 17 // the number of the first vector register
)

// parse reads an expression. What is not one register, or the sum of a base and a number, is
// NotKnown.
func parse(b []byte) (e expression) {
	if len(b) == 0 {
		return e
	}
	op, rest := b[0], b[1:]
	e.Where = located.Memory
	ok := true
	switch {
	case op == opAddr && len(rest) >= 8:
		e.Base, e.Offset = located.LoadBase, int64(binary.LittleEndian.Uint64(rest))
		rest = rest[8:]
	case opReg0 <= op && op < opReg0+32:
		return register(int(op-opReg0), rest)
	case opBreg0 <= op && op < opBreg0+uint8(len(general)):
		e.Base = general[op-opBreg0] + 1
		e.Offset, rest, ok = signed(rest)
	case op == opFbreg:
		e.isFramed = true
		e.Offset, rest, ok = signed(rest)
	case op == opCFA:
		e.isCFA = true
	case opLit0 <= op && op < opLit0+32:
		e.Offset = int64(op - opLit0)
		ok = len(rest) > 0 // a number, or the address of nothing
	case opConst1u <= op && op < opConst1u+10:
		e.Offset, rest, ok = constant(op-opConst1u, rest)
		ok = ok && len(rest) > 0
	default:
		ok = false
	}
	for ok && len(rest) > 0 && rest[0] == opPlusUconst {
		n, size := binary.Uvarint(rest[1:])
		ok = size > 0
		e.Offset, rest = e.Offset+int64(n), rest[1+max(size, 0):]
	}
	switch {
	case ok && len(rest) == 0:
	case ok && len(rest) == 1 && rest[0] == opStackValue:
		e.Where = located.Number
	default:
		return expression{}
	}
	return e
}

// register is the expression of a register, by its number.
func register(n int, rest []byte) (e expression) {
	switch {
	case len(rest) > 0: // pieces
	case n < len(general):
		e.Where, e.Base = located.Register, general[n]+1
	case vectors <= n && n < vectors+16:
		e.Where, e.Offset = located.Vector, int64(n-vectors)
	}
	return e
}

// constant reads the operand of an operation from opConst1u on: of 1, 2, 4 and 8 bytes, unsigned
// and signed, and of variable length.
func constant(kind uint8, b []byte) (n int64, rest []byte, ok bool) {
	switch kind {
	case 8:
		n, size := binary.Uvarint(b)
		return int64(n), b[max(size, 0):], size > 0
	case 9:
		return signed(b)
	}
	size := 1 << (kind / 2)
	if len(b) < size {
		return 0, nil, false
	}
	var word [8]byte
	copy(word[:], b[:size])
	n = int64(binary.LittleEndian.Uint64(word[:]))
	if kind%2 == 1 {
		unused := 64 - 8*size
		n = n << unused >> unused
	}
	return n, b[size:], true
}

// signed reads a signed LEB128.
func signed(b []byte) (n int64, rest []byte, ok bool) {
	for i, c := range b {
		if i == 10 {
			break
		}
		n |= int64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if shift := 7 * (i + 1); c&0x40 != 0 && shift < 64 {
				n |= -1 << shift
			}
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

package x86

import "encoding/binary"

// none is the operand that an instruction without one has.
var none = Operand{Reg: -1, Base: -1, Index: -1}

// Operands decodes the ModRM operands of the instruction at the start of code; next is the address
// behind it. It returns the reg field with its REX extension (-1 without a ModRM byte), the r/m
// operand, and the offset in code of the immediate (the instruction's length when there is none).
// What is missing in truncated code is none.
//
// The numbers are those of general registers; where the instruction takes vector registers (also as
// an index: gathers and scatters) they mean those. Size is the operand's width (for lea the width
// of the result), 0 for vector and x87 operands. The 8-bit displacement of an EVEX operand is not
// scaled.
func (in *Inst) Operands(code []byte, next uint64) (reg int8, rm Operand, imm int) {
	at := int(in.operandAt)
	if !in.HasModRM {
		return -1, none, at
	}
	if at >= len(code) {
		return -1, none, int(in.Len)
	}
	length := in.modRMLen(code[at:])
	if at+length > len(code) {
		return -1, none, int(in.Len)
	}
	b := code[at : at+length]
	reg = int8(in.ModRM>>3&7 | in.Rex<<1&8)
	rm = none
	if length == 1 && (in.ModRM>>6 == 3 || in.isControlMove()) {
		rm.Reg = int8(in.ModRM&7 | in.Rex<<3&8)
	} else {
		rm = in.memory(b, next)
	}
	rm.Size = in.width()
	return reg, rm, at + length
}

// memory decodes the memory operand whose ModRM byte, SIB byte and displacement b holds.
func (in *Inst) memory(b []byte, next uint64) Operand {
	o := Operand{Mem: true, Reg: -1, Base: int8(b[0]&7 | in.Rex<<3&8), Index: -1, Scale: 1}
	mod := b[0] >> 6
	disp := b[1:]
	if b[0]&7 == 4 {
		sib := b[1]
		disp = b[2:]
		o.Scale = 1 << (sib >> 6)
		if index := int8(sib>>3&7 | in.Rex<<2&8); index != 4 {
			o.Index = index
		}
		o.Base = int8(sib&7 | in.Rex<<3&8)
		if mod == 0 && sib&7 == 5 {
			o.Base = -1
		}
	} else if mod == 0 && b[0]&7 == 5 {
		o.Base, o.RIP = -1, true
	}
	switch len(disp) {
	case 1:
		o.Disp = int64(int8(disp[0]))
	case 4:
		o.Disp = int64(int32(binary.LittleEndian.Uint32(disp)))
	}
	if o.RIP {
		o.Disp += int64(next)
	}
	return o
}

func (in *Inst) isControlMove() bool { return in.Map == 1 && in.Op >= 0x20 && in.Op <= 0x23 }

// width returns the width of the r/m operand in bytes, 0 when it is no integer.
func (in *Inst) width() uint8 {
	switch in.Map {
	case 0:
		return oneByteWidth(in)
	case 1:
		return twoByteWidth(in)
	case 2:
		if in.Op < 0xf0 {
			return 0
		}
		if in.Op == 0xf0 && in.Rep == 0xf2 { // crc32 of a byte
			return 1
		}
	case 0x12, 0x13: // BMI
		if in.Op < 0xf0 {
			return 0
		}
	default:
		return 0
	}
	return in.operandSize()
}

func oneByteWidth(in *Inst) uint8 {
	switch {
	case oneByte[in.Op]&byteWide != 0:
		return 1
	case in.Op >= 0xd8 && in.Op <= 0xdf: // x87
		return 0
	case in.Op == 0x63: // movsxd
		return 4
	case in.Op == 0x8c || in.Op == 0x8e: // segment registers
		return 2
	case in.Op == 0x8f || in.Op == 0xff && in.ModRM>>3&7 >= 2:
		return in.stackWidth()
	}
	return in.operandSize()
}

func twoByteWidth(in *Inst) uint8 {
	switch op := in.Op; {
	case op >= 0x10 && op <= 0x17, op >= 0x28 && op <= 0x2f, op >= 0x50 && op <= 0x7f &&
		op != 0x6e && op != 0x7e,
		op == 0xc2, op >= 0xc4 && op <= 0xc6, op >= 0xd0:
		return 0
	case op == 0xae || op == 0xc7:
		return in.stateWidth()
	case op == 0xb7 || op == 0xbf:
		return 2
	case twoByte[op]&byteWide != 0:
		return 1
	}
	return in.operandSize()
}

// stateWidth is for fxsave, xsave and their like, and what shares their opcodes.
func (in *Inst) stateWidth() uint8 {
	switch group := in.ModRM >> 3 & 7; {
	case in.ModRM>>6 == 3:
	case in.Op == 0xae && group&^1 == 2: // ldmxcsr, stmxcsr
		return 4
	case in.Op == 0xae && group != 7, in.Op == 0xc7 && group >= 3 && group <= 5:
		return 0
	}
	return in.operandSize()
}

// Elsewhere reports whether memory operands are not where their registers say: a segment is added,
// or addresses have 32 bits.
func (in *Inst) Elsewhere() bool { return in.prefix&(segmentPrefix|addressPrefix) != 0 }

// A Segment is what is added to the address of a memory operand.
type Segment uint8

// The segments: all others begin at 0.
const (
	NoSegment Segment = iota
	FS
	GS
)

// Segment returns the segment that the prefixes give to memory operands. ok is false where they
// give several: processors differ.
func (in *Inst) Segment() (s Segment, ok bool) {
	switch in.prefix & (fsPrefix | gsPrefix) {
	case 0:
		return NoSegment, true
	case fsPrefix:
		return FS, true
	case gsPrefix:
		return GS, true
	}
	return NoSegment, false
}

// Short reports whether addresses have 32 bits.
func (in *Inst) Short() bool { return in.prefix&addressPrefix != 0 }

// Third returns the general register that the instruction names besides its ModRM operands; -1:
// none.
func (in *Inst) Third() int8 {
	if in.Map == 0x12 && in.Op >= 0xe0 || in.Map == 0x39 {
		// cmpccxadd, andn, blsr, bzhi, pdep, mulx, shlx ...; blcfill ...
		return int8(in.vvvv)
	}
	return -1
}

// operandSize returns the width in bytes that the prefixes give an integer operand.
func (in *Inst) operandSize() uint8 {
	switch {
	case in.Rex&8 != 0:
		return 8
	case in.OpSize && in.is66Size():
		return 2
	}
	return 4
}

// is66Size says whether a 66 prefix is one for the operand size: it is a part of the opcode of adcx
// and of what has to do with vectors, and of what VEX, EVEX and XOP encode.
func (in *Inst) is66Size() bool {
	switch op := in.Op; in.Map {
	case 0:
		return true
	case 1:
		return op < 0x10 || op >= 0x18 && op < 0x28 || op >= 0x30 && op < 0x50 ||
			op >= 0x80 && op < 0xd0 && op != 0xc2 && (op < 0xc4 || op > 0xc6)
	case 2: // movbe, crc32
		return op == 0xf0 || op == 0xf1
	}
	return false
}

// stackWidth returns how many bytes a push, pop or indirect branch moves.
func (in *Inst) stackWidth() uint8 {
	if in.OpSize && in.Rex&8 == 0 {
		return 2
	}
	return 8
}

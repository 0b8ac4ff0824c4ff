package x86

import "encoding/binary"

const rsp = 4

// StackDelta returns what the instruction at the start of code adds to rsp on its way to the next
// one: -8 for a push, 8 for a pop, 0 for an instruction that leaves rsp alone. A call counts as 0,
// for its callee takes the return address off; a return counts what it takes off. ok is false when
// the change is not a constant (leave, enter, mov to rsp, and rsp, sub of a register, pop rsp ...)
// or code is truncated.
func (in *Inst) StackDelta(code []byte) (delta int, ok bool) {
	if len(code) < int(in.Len) {
		return 0, false
	}
	code = code[:in.Len]
	writes := in.WritesRSP(code)
	if delta, ok = implicitDelta(in, code); ok && !writes {
		return delta, true
	}
	if delta, ok = arithmeticDelta(in, code); ok {
		return delta, true
	}
	opaque := in.Map == 0 && (in.Op == 0xc8 || in.Op == 0xc9 || in.Op == 0xcf) // enter, leave, iret
	return 0, !writes && !opaque
}

// implicitDelta handles the instructions that move rsp by their nature.
func implicitDelta(in *Inst, code []byte) (delta int, ok bool) {
	if in.Map == 1 {
		switch in.Op {
		case 0xa0, 0xa8: // push fs, gs
			return -int(in.stackWidth()), true
		case 0xa1, 0xa9: // pop fs, gs
			return int(in.stackWidth()), true
		}
	}
	if in.Map != 0 {
		return 0, false
	}
	group := in.ModRM >> 3 & 7
	switch op := in.Op; {
	case op&0xf8 == 0x50, op == 0x68, op == 0x6a, op == 0x9c, op == 0xff && group == 6:
		// push, pushf
		return -int(in.stackWidth()), true
	case op&0xf8 == 0x58, op == 0x8f, op == 0x9d: // pop, popf
		return int(in.stackWidth()), true
	case op == 0xc3, op == 0xcb:
		return returnDelta(in), true
	case op == 0xc2, op == 0xca:
		return returnDelta(in) + int(binary.LittleEndian.Uint16(code[in.operandAt:])), true
	}
	return 0, false
}

// returnDelta returns the size of the return address, with the code segment of a far return.
func returnDelta(in *Inst) int {
	switch near := in.Op == 0xc2 || in.Op == 0xc3; {
	case near:
		return int(in.stackWidth())
	default:
		return 2 * int(in.operandSize())
	}
}

// arithmeticDelta handles add, sub and lea with a constant, and inc and dec.
func arithmeticDelta(in *Inst, code []byte) (delta int, ok bool) {
	if in.Map != 0 || in.Rex&8 == 0 || in.prefix&addressPrefix != 0 {
		return 0, false
	}
	reg, rm, imm := in.Operands(code, 0)
	if in.Op == 0x8d && reg == rsp && rm.Base == rsp && rm.Index < 0 {
		return int(rm.Disp), true
	}
	if rm.Mem || rm.Reg != rsp {
		return 0, false
	}
	group := in.ModRM >> 3 & 7
	switch in.Op {
	case 0x81:
		delta = int(int32(binary.LittleEndian.Uint32(code[imm:])))
	case 0x83:
		delta = int(int8(code[imm]))
	case 0xff:
		return 1 - 2*int(group), group < 2
	default:
		return 0, false
	}
	switch group {
	case 0:
		return delta, true
	case 5:
		return -delta, true
	}
	return 0, false
}

// WritesRSP reports whether rsp, or a part of it, is an explicit destination of the instruction at
// the start of code: add to rsp, mov to esp, pop rsp, xchg. What push, pop, call, ret, enter and
// leave do by their nature does not count. It answers true for truncated code.
func (in *Inst) WritesRSP(code []byte) bool { return in.Writes(code, rsp) }

// Writes is WritesRSP for any general register. Of ah, ch, dh and bh it says nothing.
func (in *Inst) Writes(code []byte, number uint8) bool {
	if len(code) < int(in.Len) {
		return true
	}
	if !in.HasModRM {
		return writesOpcodeRegister(in, number)
	}
	toRM, toReg := in.destinations()
	reg, rm, _ := in.Operands(code[:in.Len], 0)
	byteWide := in.Map == 0 && oneByte[in.Op]&byteWide != 0 ||
		in.Map == 1 && twoByte[in.Op]&byteWide != 0 && in.Op != 0xb6 && in.Op != 0xbe
	if byteWide && in.Rex == 0 && number >= 4 && number < 8 { // the number 4 is ah
		return false
	}
	return toRM && !rm.Mem && rm.Reg == int8(number) || toReg && reg == int8(number) ||
		writesVVVV(in) && in.vvvv == number
}

// writesOpcodeRegister handles the opcodes whose low three bits name a register.
func writesOpcodeRegister(in *Inst, reg uint8) bool {
	if in.Op&7|in.Rex<<3&8 != reg {
		return false
	}
	switch in.Map {
	case 0:
		row := in.Op & 0xf8
		return row == 0x58 || row == 0x90 || row == 0xb8 || row == 0xb0 && in.Rex != 0
	case 1:
		return in.Op&0xf8 == 0xc8 // bswap
	}
	return false
}

// destinations says which ModRM operands the instruction writes, as general registers.
func (in *Inst) destinations() (rm, reg bool) {
	group := in.ModRM >> 3 & 7
	switch in.Map {
	case 0:
		a := oneByte[in.Op]
		return a&writesRM != 0 && oneByteGroupWrites(in, group), a&writesReg != 0
	case 1:
		a := twoByte[in.Op]
		return a&writesRM != 0 && twoByteGroupWrites(in, group), a&writesReg != 0 &&
			twoByteRegWrites(in)
	case 2: // movbe, crc32, adcx, adox
		return false, in.Op == 0xf0 || in.Op == 0xf1 && in.Rep == 0xf2 ||
			in.Op == 0xf6 && (in.OpSize || in.Rep == 0xf3)
	case 3, 0x13, 0x23: // pextrb, pextrw, pextrd, extractps; rorx
		return in.Op >= 0x14 && in.Op <= 0x17, in.Map == 0x13 && in.Op == 0xf0
	case 0x11, 0x21, 0x25:
		return vectorDestinations(in)
	case 0x12: // cmpccxadd, andn, bzhi, pdep, pext, mulx, bextr, shlx ...
		return false, in.Op >= 0xe0 && in.Op <= 0xef || in.Op == 0xf2 ||
			in.Op >= 0xf5 && in.Op <= 0xf7
	case 0x39: // slwpcb
		return in.Op == 0x12, false
	case 0x3a: // bextr
		return false, in.Op == 0x10
	}
	return false, false
}

// oneByteGroupWrites says whether the member of an opcode group writes its r/m operand.
func oneByteGroupWrites(in *Inst, group byte) bool {
	switch in.Op {
	case 0x80, 0x81, 0x83: // all but cmp
		return group != 7
	case 0xf6, 0xf7: // not, neg
		return group == 2 || group == 3
	case 0xfe, 0xff: // inc, dec
		return group < 2
	case 0xc6, 0xc7, 0x8f: // mov, pop
		return group == 0
	}
	return true
}

func twoByteGroupWrites(in *Inst, group byte) bool {
	switch in.Op {
	case 0x00: // sldt, str
		return group < 2
	case 0x01: // smsw
		return group == 4
	case 0x1e: // rdssp
		return in.Rep == 0xf3 && group == 1
	case 0x21, 0x20:
		return true
	case 0x78: // vmread
		return !in.OpSize && in.Rep == 0
	case 0x7e: // movd, movq to a general register
		return in.Rep == 0
	case 0xae: // rdfsbase, rdgsbase
		return in.Rep == 0xf3 && group < 2
	case 0xba: // all but bt
		return group > 4
	case 0xc7: // rdrand, rdseed, rdpid, but not senduipi
		return group == 7 || group == 6 && in.Rep == 0
	}
	return true
}

// twoByteRegWrites distinguishes conversions to a general register from those to an MMX register.
func twoByteRegWrites(in *Inst) bool {
	if in.Op == 0x2c || in.Op == 0x2d {
		return in.Rep != 0
	}
	return true
}

// vectorDestinations handles the instructions of VEX and EVEX map 1, and of EVEX map 5, that write
// a general register.
func vectorDestinations(in *Inst) (rm, reg bool) {
	vex := in.Map == 0x11
	switch in.Op {
	case 0x7e:
		return in.OpSize, false
	case 0x2c, 0x2d:
		return false, in.Rep != 0
	case 0x78, 0x79:
		return false, !vex && in.Rep != 0
	case 0xc5:
		return false, true
	case 0x50, 0x93, 0xd7: // movmsk, kmov, pmovmskb
		return false, vex
	}
	return false, false
}

// writesVVVV says whether the third operand of VEX and XOP instructions is a general register that
// is written.
func writesVVVV(in *Inst) bool {
	switch in.Map {
	case 0x12: // blsr, blsmsk, blsi; mulx
		return in.Op == 0xf3 || in.Op == 0xf6
	case 0x39: // TBM
		return in.Op == 0x01 || in.Op == 0x02
	}
	return false
}

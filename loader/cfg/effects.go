package cfg

import "wpptrace/loader/x86"

// allRegisters are all general registers but rsp, whose writes frame.go sees to.
const allRegisters = 0xffff &^ (1 << rsp)

// writtenRegisters returns the set of general registers that an instruction may write, at least.
func writtenRegisters(op *operation) uint16 {
	switch op.Map {
	case 0:
		return oneByteWrites(op)
	case 1:
		return twoByteWrites(op)
	case 2, 3, 0x12, 0x13: // legacy and VEX
		return namedRegisters(op)
	case 0x11, 0x21: // VEX and EVEX
		return vectorWrites(op)
	case 0x22:
		if op.Op < 0xe0 { // bit manipulation is behind
			return 0
		}
	case 0x23:
		if op.Op != 0xf0 && (op.Op < 0x14 || op.Op > 0x17) { // rorx and vpextr are
			return 0
		}
	}
	return allRegisters // seldom in the way
}

// vectorWrites is for the map of vector instructions in which some write a general register.
func vectorWrites(op *operation) uint16 {
	switch op.Op {
	case 0x7e, 0xc5, 0xd7, 0x50, 0x2c, 0x2d, 0x78, 0x79, 0x92, 0x93:
		return modRMRegisters(op)
	}
	return 0
}

// namedRegisters returns what an instruction of the three-byte maps may write.
func namedRegisters(op *operation) (out uint16) {
	if op.Map == 2 && op.Op >= 0xf8 { // encodekey, urdmsr, and what stores where registers say
		return allRegisters
	}
	if op.Map&0xf == 3 && op.Op>>4 == 6 { // pcmpestri and the like
		out = 1 << rcx
	}
	for number := range uint8(16) {
		if number != rsp && op.Writes(op.code, number) {
			out |= 1 << number
		}
	}
	return out
}

// modRMRegisters returns the registers that the ModRM byte names, written or not.
func modRMRegisters(op *operation) uint16 {
	out := uint16(0)
	if op.reg >= 0 {
		out |= bitOf(op.reg)
	}
	return out | rmRegister(op)
}

func bitOf(reg int8) uint16 { return 1 << (reg & 15) }

// rmRegister returns the register that the r/m operand is.
func rmRegister(op *operation) uint16 {
	if op.HasModRM && !op.rm.Mem && op.rm.Reg >= 0 {
		out := bitOf(op.rm.Reg)
		if op.rm.Size == 1 && op.Rex == 0 && op.rm.Reg >= 4 && op.rm.Reg < 8 {
			out |= bitOf(op.rm.Reg - 4) // ah, ch, dh, bh
		}
		return out
	}
	return 0
}

func regRegister(op *operation) uint16 {
	if op.reg < 0 {
		return 0
	}
	out := bitOf(op.reg)
	if op.Op&1 == 0 && op.Rex == 0 && op.reg >= 4 && op.reg < 8 {
		out |= bitOf(op.reg - 4)
	}
	return out
}

func oneByteWrites(op *operation) uint16 {
	group := op.ModRM >> 3 & 7
	switch o := op.Op; {
	case o < 0x40:
		return arithmeticWrites(op)
	case o >= 0x50 && o <= 0x5f, o >= 0x90 && o <= 0x97, o >= 0xb0 && o <= 0xbf:
		return opcodeWrites(op)
	case o >= 0xf6 && o <= 0xf7, o >= 0xfe:
		return unaryWrites(op)
	case o == 0x63, o == 0x69, o == 0x6b, o == lea:
		return regRegister(op) | bitOf(op.reg)
	case o == 0x8a, o == 0x8b:
		return regRegister(op)
	case o >= 0x80 && o <= 0x83 && group == aluCmp:
		return 0
	case o == 0x88, o == 0x89, o >= 0x80 && o <= 0x83, o == 0x8f, o == 0xc6, o == 0xc7, o == 0xc0, o == 0xc1, o >= 0xd0 && o <= 0xd3, o == 0x8c:
		return rmRegister(op)
	case o == 0x86, o == 0x87:
		return modRMRegisters(op) | rmRegister(op) | regRegister(op)
	case o == 0x98:
		return 1 << rax
	case o == 0x99:
		return 1 << rdx
	case o == 0x68, o == 0x6a, o == 0x84, o == 0x85, o >= 0x9b && o <= 0x9e, o == 0xa8, o == 0xa9, o == 0xf5, o >= 0xf8 && o <= 0xfd:
		return 0
	case isString(&op.Inst):
		return 1<<rax | 1<<rcx | 1<<rsi | 1<<rdi
	case o == 0xc9:
		return 1 << rbp
	case o >= 0xd8 && o <= 0xdf:
		return 1 << rax // fnstsw
	}
	return allRegisters
}

// arithmeticWrites is for add, or, adc, sbb, and, sub, xor and cmp in their six forms.
func arithmeticWrites(op *operation) uint16 {
	switch o := op.Op; {
	case o>>3 == aluCmp:
		return 0
	case o&7 < 2:
		return rmRegister(op)
	case o&7 < 4:
		return regRegister(op) | bitOf(op.reg)
	}
	return 1 << rax
}

// opcodeWrites is for instructions with a register in the opcode: push and pop, xchg with rax, mov
// of a constant.
func opcodeWrites(op *operation) uint16 {
	reg := bitOf(int8(op.Op&7 | op.Rex<<3&8))
	switch o := op.Op; {
	case o <= 0x57, o == 0x90 && op.Rex&1 == 0:
		return 0
	case o >= 0x90 && o <= 0x97:
		return reg | 1<<rax
	case o < 0xb8 && op.Rex == 0 && o&7 >= 4:
		return reg | bitOf(int8(o&7-4)) // ah, ch, dh, bh
	}
	return reg
}

// unaryWrites is for test, not, neg, mul, imul, div and idiv (0xf6, 0xf7), and for inc, dec, call,
// jmp and push (0xfe, 0xff).
func unaryWrites(op *operation) uint16 {
	group := op.ModRM >> 3 & 7
	switch first := op.Op <= 0xf7; {
	case first && group >= 4:
		return 1<<rax | 1<<rdx
	case first && group >= 2, !first && group < 2:
		return rmRegister(op)
	}
	return 0
}

func twoByteWrites(op *operation) uint16 {
	switch o := op.Op; {
	case o == 0x1e && op.Rep == 0xf3: // rdssp, endbr64
		if op.rm.Mem || op.ModRM >= 0xf0 {
			return 0
		}
		return rmRegister(op)
	case o == 0x05, o == 0x34:
		return 1<<rax | 1<<rcx | 1<<r11
	case o == 0x0b, o == 0x0d, o >= 0x10 && o <= 0x1f, o >= 0x28 && o <= 0x2b, o == 0x2e, o == 0x2f:
		return 0
	case o == 0x2c, o == 0x2d, o == 0x50, o == 0xc5, o == 0xd7, o>>4 == 4, o == 0xaf, o >= 0xb6 && o <= 0xb8, o >= 0xbc && o <= 0xbf:
		return bitOf(op.reg)
	case o == 0x7e, o>>4 == 9:
		return rmRegister(op)
	case o >= 0x51 && o <= 0x7f, o>>4 == 8, o == 0xc2, o == 0xc4, o == 0xc6, o >= 0xd0, o == 0xa3, o == 0xae && op.rm.Mem, o == 0x77:
		return 0
	case o == 0xa4, o == 0xa5, o == 0xac, o == 0xad, o == 0xab, o == 0xb3, o == 0xbb, o == 0xba:
		return rmRegister(op)
	case o == 0xb0, o == 0xb1, o == 0xc0, o == 0xc1:
		return regRegister(op) | modRMRegisters(op) | rmRegister(op) | 1<<rax
	case o >= 0xc8 && o <= 0xcf:
		return bitOf(int8(o&7 | op.Rex<<3&8))
	case o == 0xa2, o == 0x31:
		return 1<<rax | 1<<rcx | 1<<rdx | 1<<3
	}
	return allRegisters
}

// writesMemory says whether the instruction may write its memory operand.
func writesMemory(op *operation) bool {
	o := op.Op
	switch op.Map {
	case 0:
		return !(o < 0x40 && (o&7 >= 2 || o>>3 == aluCmp) || o == 0x84 || o == 0x85 || o == 0x8a || o == 0x8b || o == lea || o == 0x63 ||
			o == 0x69 || o == 0x6b || o == 0xf6 && op.ModRM>>3&7 != 2 && op.ModRM>>3&7 != 3 || o == 0xf7 && op.ModRM>>3&7 != 2 && op.ModRM>>3&7 != 3 ||
			o == 0xff && op.ModRM>>3&7 >= 2 || o >= 0x80 && o <= 0x83 && op.ModRM>>3&7 == aluCmp)
	case 1:
		return !(o>>4 == 4 || o == 0x1f || o == 0x1e || o == 0x18 || o == 0x0d || o == 0xaf || o == 0xb6 || o == 0xb7 || o == 0xbe || o == 0xbf || o == 0x10 || o == 0x12 ||
			o == 0x16 || o == 0x28 || o >= 0x2a && o <= 0x2f && o != 0x2b || o >= 0x51 && o <= 0x7d || o == 0x6f || o == 0x7e && op.Rep == 0xf3)
	}
	return true
}

// storeSize returns how many bytes an instruction writes to its memory operand, at most.
func storeSize(op *operation) int {
	const (
		saveArea    = 0xae // with the state that xsave and the like write, which no frame has spill slots within
		x87, x87End = 0xd8, 0xdf
	)
	switch {
	case op.rm.Size > 0:
		return int(op.rm.Size)
	case op.Map == 1 && op.Op == saveArea, op.Map == 1 && op.Op == 0xc7:
		return 1 << 14
	case op.Map == 0 && op.Op >= x87 && op.Op <= x87End:
		return 108
	case op.Map < 0x10:
		return 16
	case op.Map < 0x20:
		return 32
	}
	return 64
}

func isString(in *x86.Inst) bool {
	return in.Map == 0 && (in.Op >= 0xa4 && in.Op <= 0xa7 || in.Op >= 0xaa && in.Op <= 0xaf)
}

// isComparison says whether the instruction leaves flags that compareWith noted.
func isComparison(in *x86.Inst) bool {
	if in.Map != 0 {
		return false
	}
	operation := in.ModRM >> 3 & 7
	if in.Op < 0x40 {
		operation = in.Op >> 3
	} else if in.Op != 0x80 && in.Op != 0x81 && in.Op != 0x83 {
		return false
	}
	return operation == aluCmp || operation == aluSub
}

// keepsFlags says whether an instruction surely leaves the arithmetic flags alone.
func keepsFlags(in *x86.Inst) bool {
	o := in.Op
	switch in.Map {
	case 0:
		return o >= 0x50 && o <= 0x5f || o == 0x63 || o == 0x68 || o == 0x6a || o >= 0x70 && o <= 0x7f || o >= 0x86 && o <= 0x99 || o >= 0xb0 && o <= 0xbf ||
			o == 0xc6 || o == 0xc7 || o == 0xc9 || o == 0xeb || o == 0xe9 || (o == 0xf6 || o == 0xf7) && in.ModRM>>3&7 == 2
	case 1:
		return o == 0x0d || o >= 0x10 && o <= 0x1f || o >= 0x28 && o <= 0x2d || o>>4 == 4 || o >= 0x50 && o <= 0x9f || o == 0xb6 || o == 0xb7 ||
			o == 0xbe || o == 0xbf || o >= 0xc4 && o <= 0xc6 || o >= 0xc8
	}
	return false
}

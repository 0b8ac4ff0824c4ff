package x86

import "bytes"

// Class says whether a uprobe may sit on the instruction at the start of code, and what a hit
// costs. Only what the lists here name is admitted: on other instructions the kernel refuses a
// probe, counts wrong, or corrupts the target.
func (in *Inst) Class(code []byte) Class {
	switch {
	case len(code) < int(in.Len):
		return Never
	case in.emulated():
		return Emulated
	case in.prefix != 0:
		return Never
	case in.stepped(code[:in.Len]):
		return Stepped
	}
	return Never
}

// emulated names what every kernel that has uprobes on x86-64 emulates. The lengths admit no prefix
// but REX.B in front of push and bnd in front of a branch; besides, a call may have the prefix for
// the address size, by which linkers fill up what was indirect.
func (in *Inst) emulated() bool {
	if in.prefix != 0 {
		return in.prefix == addressPrefix && in.Kind == Call && in.Op == 0xe8 && in.Len == 6 &&
			in.Rex == 0 && !in.OpSize && in.Rep == 0
	}
	length := in.Len
	if in.Rep == 0xf2 {
		length--
	}
	switch {
	case in.Rex != 0 && !(in.Rex == 0x41 && in.isPush()) || in.OpSize || in.Rep == 0xf3:
		return false
	case in.Map == 1:
		return in.Kind == Jcc && length == 6
	case in.Map != 0:
		return false
	case in.Kind == Jcc || in.Op == 0xeb:
		return length == 2
	case in.Kind == Call || in.Op == 0xe9:
		return length == 5
	case in.isPush():
		return in.Rep == 0 && (in.Len == 1 || in.Len == 2 && in.Rex != 0)
	}
	return in.Op == 0x90 && in.Len == 1
}

func (in *Inst) isPush() bool { return in.Map == 0 && in.Op&0xf8 == 0x50 }

// nop5 is the nop that newer kernels overwrite with a call, which clobbers the red zone.
var nop5 = []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

// stepped names plain integer instructions that read neither rip (but for an operand), flags as a
// whole, nor segments, that do not repeat and do not enter the kernel.
func (in *Inst) stepped(code []byte) bool {
	if in.Map > 1 || in.Rep != 0 {
		return in.IsEndbr64()
	}
	if in.Map == 1 {
		return in.steppedTwoByte() && !bytes.Equal(code, nop5)
	}
	group := in.ModRM >> 3 & 7
	switch op := in.Op; {
	case op < 0x40: // add, or, adc, sbb, and, sub, xor, cmp
		return true
	case op >= 0x58 && op <= 0x5f, op == 0xc2, op == 0xc3, op == 0xc9: // pop, ret, leave
		return !in.OpSize
	case op == 0xff: // inc, dec, indirect call and jump
		return group <= 1 || (group == 2 || group == 4) && !in.OpSize
	case op == 0xc6 || op == 0xc7 || op == 0xfe: // mov; inc, dec
		return group == 0 || op == 0xfe && group == 1
	}
	return steppedOneByte[in.Op]
}

var steppedOneByte = opcodes(
	0x63,       // movsxd
	0x69, 0x6b, // imul
	0x80, 0x81, 0x83, // arithmetic with an immediate
	0x84, 0x85, // test
	0x88, 0x89, 0x8a, 0x8b, 0x8d, // mov, lea
	0x98, 0x99, // cltq, cqto
	0xa8, 0xa9, // test
	// mov
	0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf,
	0xc0, 0xc1, 0xd0, 0xd1, 0xd2, 0xd3, // shifts
	0xf6, 0xf7, // test, not, neg, mul, div
)

// steppedTwoByte admits the nops of several bytes, cmov, setcc, imul, movzx, movsx and bswap.
func (in *Inst) steppedTwoByte() bool {
	switch op := in.Op; {
	case op == 0x1f:
		return in.ModRM>>3&7 == 0
	case op >= 0x40 && op <= 0x4f, op >= 0x90 && op <= 0x9f, op == 0xaf,
		op == 0xb6, op == 0xb7, op == 0xbe, op == 0xbf, op >= 0xc8 && op <= 0xcf:
		return true
	}
	return false
}

func opcodes(ops ...byte) (set [256]bool) {
	for _, op := range ops {
		set[op] = true
	}
	return set
}

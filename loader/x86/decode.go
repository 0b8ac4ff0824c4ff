package x86

import "encoding/binary"

// maxLen is the length in bytes that the hardware allows an instruction.
const maxLen = 15

// Decode decodes the instruction at the start of code. It answers false, and an empty Inst, when
// the bytes are no instruction of 64-bit mode or end within one; the EVEX and REX2 instructions of
// APX are none, nor is a relative branch with a 66 prefix. It does not allocate.
func Decode(code []byte) (in Inst, ok bool) {
	ok = in.Read(code)
	return in, ok
}

// Read is Decode into an Inst, whatever that was before. It takes two thirds of the time where the
// Inst is one of many in memory: processors wait for what is written byte by byte before they copy
// it.
func (in *Inst) Read(code []byte) bool {
	*in = Inst{}
	if in.read(code) {
		return true
	}
	*in = Inst{}
	return false
}

// read is Read of an Inst that is empty, and leaves anything in it where it answers false.
func (in *Inst) read(code []byte) bool {
	if len(code) > maxLen {
		code = code[:maxLen]
	}
	at := decodePrefixes(in, code)
	if at >= len(code) {
		return false
	}
	op := code[at]
	a := oneByte[op]
	at++
	if a&escape != 0 || op == 0x8f && isXOP(code, at) {
		a, at = decodeEscape(in, code, op, at)
	} else {
		in.Op, in.Kind = op, oneByteKinds[op]
	}
	if a&invalid != 0 || at > len(code) {
		return false
	}
	in.operandAt = uint8(at)
	if a&modRM != 0 {
		if at >= len(code) {
			return false
		}
		in.ModRM, in.HasModRM = code[at], true
		at += in.modRMLen(code[at:])
		if a&grouped != 0 {
			a |= decodeGroup(in)
			if a&invalid != 0 {
				return false
			}
		}
	}
	if a&(rel8|rel32) != 0 && in.OpSize && in.Rex&8 == 0 {
		// Intel and AMD disagree on what a 66 prefix does to a branch
		return false
	}
	end := at
	if a&trailing != 0 {
		end += immediateLen(in, a)
	}
	if end > len(code) {
		return false
	}
	if a&rel8 != 0 {
		in.Rel = int32(int8(code[at]))
	} else if a&rel32 != 0 {
		in.Rel = int32(binary.LittleEndian.Uint32(code[at:]))
	}
	in.Len = uint8(end)
	return true
}

// decodePrefixes reads legacy and REX prefixes and returns the offset of the opcode. A REX prefix
// counts only just before the opcode.
func decodePrefixes(in *Inst, code []byte) int {
	for at, c := range code {
		switch a := oneByte[c]; {
		case a&(rex|legacy) == 0:
			return at
		case a&rex != 0:
			in.Rex = c
		default:
			in.Rex = 0
			addLegacyPrefix(in, c)
		}
	}
	return len(code)
}

func addLegacyPrefix(in *Inst, c byte) {
	switch c {
	case 0x66:
		in.OpSize = true
	case 0x67:
		in.prefix |= addressPrefix
	case 0xf0:
		in.prefix |= lockPrefix
	case 0xf2, 0xf3:
		in.Rep = c
	case 0x64:
		in.prefix |= segmentPrefix | fsPrefix
	case 0x65:
		in.prefix |= segmentPrefix | gsPrefix
	default:
		in.prefix |= segmentPrefix
	}
}

// isXOP distinguishes an XOP prefix from the opcode of pop r/m64, whose reg field is 0.
func isXOP(code []byte, at int) bool { return at < len(code) && code[at]&0x1f >= 8 }

// decodeEscape reads the opcode behind an escape byte; at is the offset behind that. The offset
// that it returns is that behind the opcode, and may lie behind the end of code.
func decodeEscape(in *Inst, code []byte, escapeByte byte, at int) (attr, int) {
	if escapeByte != 0x0f {
		return decodeVector(in, code, escapeByte, at)
	}
	if at >= len(code) {
		return invalid, at
	}
	op := code[at]
	at++
	a := twoByte[op]
	if a&escape == 0 {
		in.Op, in.Map, in.Kind = op, 1, twoByteKinds[op]
		return a, at
	}
	if at >= len(code) {
		return invalid, at
	}
	in.Op = code[at]
	if op == 0x38 {
		in.Map = 2
		return modRM, at + 1
	}
	in.Map = 3
	return modRM | imm8, at + 1
}

// decodeVector reads a VEX, EVEX or XOP prefix and the opcode behind it. Legacy prefixes other than
// segments and address size, and REX, make these undefined.
func decodeVector(in *Inst, code []byte, escapeByte byte, at int) (attr, int) {
	length := 2 // bytes of prefix behind the first
	switch escapeByte {
	case 0xc5:
		length = 1
	case 0x62:
		length = 3
	}
	if at+length >= len(code) || in.Rex != 0 || in.OpSize || in.Rep != 0 ||
		in.prefix&lockPrefix != 0 {
		return invalid, at
	}
	first, second := code[at], code[at]
	space := uint8(1)
	if escapeByte != 0xc5 {
		second = code[at+1]
		space = first & 0x1f
		in.Rex = 0x40 | ^first>>5&7 | second>>7<<3
	} else {
		in.Rex = 0x40 | ^first>>7<<2
	}
	in.vvvv = ^second >> 3 & 0xf
	in.OpSize, in.Rep = second&3 == 1, [4]byte{0, 0, 0xf3, 0xf2}[second&3]
	in.Op = code[at+length]
	at += length + 1
	switch escapeByte {
	case 0x62:
		in.Map = 0x20 | first&7
		return evexAttr(first&7, in.Op), at
	case 0x8f:
		in.Map = 0x30 | space
		return xopAttr(space), at
	default:
		in.Map = 0x10 | space
		if second&4 != 0 {
			in.prefix |= wideVectors
		}
		return vexAttr(space, in.Op), at
	}
}

func vexAttr(space uint8, op byte) attr {
	switch space {
	case 1:
		if a := twoByte[op]; a&(escape|rel32) == 0 {
			return a
		}
	case 2:
		return modRM
	case 3:
		return modRM | imm8
	case 7:
		return modRM | immZ
	}
	return invalid
}

func evexAttr(space uint8, op byte) attr {
	switch space {
	case 1:
		if a := twoByte[op]; a&(escape|rel32) == 0 && a&modRM != 0 {
			return a
		}
	case 2, 5, 6:
		return modRM
	case 3:
		return modRM | imm8
	}
	return invalid
}

func xopAttr(space uint8) attr {
	switch space {
	case 8:
		return modRM | imm8
	case 9:
		return modRM
	case 10:
		return modRM | immZ
	}
	return invalid
}

// modRMLen returns the length of the ModRM byte at the start of code, its SIB byte and its
// displacement.
func (in *Inst) modRMLen(code []byte) int {
	if in.isControlMove() {
		return 1
	}
	if code[0]&0xc7 == 4 && len(code) > 1 && code[1]&7 == 5 {
		return 6
	}
	return int(modRMLens[code[0]])
}

// modRMLens has by ModRM byte how long that is, its SIB byte and its displacement, unless the SIB
// byte says otherwise.
var modRMLens = func() (n [256]uint8) {
	for b := range n {
		mod, rm := b>>6, b&7
		if n[b] = 1; mod == 3 {
			continue
		}
		if rm == 4 {
			n[b] = 2
		}
		switch {
		case mod == 1:
			n[b]++
		case mod == 2 || rm == 5:
			n[b] += 4
		}
	}
	return n
}()

// decodeGroup adds what the ModRM byte says of an opcode that is a group.
func decodeGroup(in *Inst) attr {
	group := in.ModRM >> 3 & 7
	switch {
	case in.Map == 0:
		switch in.Op {
		case 0xff:
			return decodeIndirect(in, group)
		case 0xf6:
			if group < 2 {
				return imm8
			}
		case 0xf7:
			if group < 2 {
				return immZ
			}
		case 0xc7:
			if in.ModRM == 0xf8 { // xbegin
				in.Kind = Loop
				return rel32
			}
		}
	case in.Map == 1 && in.Op == 0x78 && (in.OpSize || in.Rep == 0xf2): // extrq, insertq
		return imm16
	}
	return 0
}

func decodeIndirect(in *Inst, group byte) attr {
	switch group {
	case 2, 3:
		in.Kind = CallInd
	case 4, 5:
		in.Kind = JmpInd
	case 7:
		return invalid
	}
	return 0
}

// immediateLen returns the length in bytes of what follows the ModRM operand.
func immediateLen(in *Inst, a attr) int {
	switch a & trailing {
	case imm8, rel8:
		return 1
	case rel32:
		return 4
	}
	n := 0
	if a&(imm8|rel8) != 0 {
		n = 1
	}
	if a&imm16 != 0 {
		n += 2
	}
	if a&rel32 != 0 {
		return n + 4
	}
	wide := in.Rex&8 != 0
	short := in.OpSize && !wide && in.Map == 0
	switch {
	case a&moffs != 0 && in.prefix&addressPrefix == 0, a&immV != 0 && wide:
		n += 8
	case a&(immZ|immV) != 0 && short:
		n += 2
	case a&(immZ|immV|moffs) != 0:
		n += 4
	}
	return n
}

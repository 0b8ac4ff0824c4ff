package x86

// An attr is a set of properties of an opcode: what follows it, and which of its operands it
// writes.
type attr uint16

const (
	modRM     attr = 1 << iota // a ModRM byte follows
	imm8                       // an 8-bit immediate
	imm16                      // a 16-bit immediate
	immZ                       // a 16-bit immediate under a 66 prefix, else 32 bits
	immV                       // as immZ, but 64 bits under REX.W
	moffs                      // an absolute address
	rel8                       // an 8-bit displacement from the instruction's end
	rel32                      // a 32-bit displacement from the instruction's end
	legacy                     // not an opcode but a legacy prefix
	rex                        // not an opcode but a REX prefix
	escape                     // leads to another map
	invalid                    // not an opcode in 64-bit mode
	writesRM                   // writes its r/m operand (groups: some members do)
	writesReg                  // writes its reg operand
	byteWide                   // operands are single bytes
	grouped                    // the ModRM byte says what it is: see decodeGroup

	trailing = imm8 | imm16 | immZ | immV | moffs | rel8 | rel32
)

// A table gives each opcode of a map its attributes.
type table [256]attr

func (t *table) set(a attr, ops ...byte) {
	for _, op := range ops {
		t[op] = a
	}
}

func (t *table) setRange(a attr, first, last byte) {
	for op := int(first); op <= int(last); op++ {
		t[op] = a
	}
}

// The opcode maps, and the kind of each opcode of the first two.
var (
	oneByte      = oneByteMap()
	twoByte      = twoByteMap()
	oneByteKinds = oneByteKindMap()
	twoByteKinds = twoByteKindMap()
)

func oneByteMap() table {
	var t table
	for row := 0; row < 0x40; row += 8 {
		setArithmetic(&t, byte(row))
	}
	t.set(legacy, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3)
	t.setRange(rex, 0x40, 0x4f)
	t.set(escape, 0x0f, 0x62, 0xc4, 0xc5)
	t.set(invalid, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea)

	t.set(modRM|writesReg, 0x63, 0x8b, 0x8d)
	t.set(modRM|writesReg|byteWide, 0x8a)
	t.set(immZ, 0x68, 0xa9)
	t.set(imm8, 0x6a, 0xa8, 0xcd, 0xe4, 0xe5, 0xe6, 0xe7)
	t.set(modRM|immZ|writesReg, 0x69)
	t.set(modRM|imm8|writesReg, 0x6b)
	t.setRange(rel8, 0x70, 0x7f)
	t.set(modRM|imm8|writesRM|byteWide, 0x80, 0xc0, 0xc6)
	t.set(modRM|imm8|writesRM, 0x83, 0xc1)
	t.set(modRM|immZ|writesRM, 0x81, 0xc7)
	t.set(modRM|byteWide, 0x84)
	t.set(modRM, 0x85, 0x8e)
	t.set(modRM|writesRM|writesReg|byteWide, 0x86)
	t.set(modRM|writesRM|writesReg, 0x87)
	t.set(modRM|writesRM|byteWide, 0x88, 0xd0, 0xd2, 0xf6, 0xfe)
	t.set(modRM|writesRM, 0x89, 0x8c, 0x8f, 0xd1, 0xd3, 0xf7, 0xff)
	t.setRange(moffs, 0xa0, 0xa3)
	t.setRange(imm8, 0xb0, 0xb7)
	t.setRange(immV, 0xb8, 0xbf)
	t.set(imm16, 0xc2, 0xca)
	t.set(imm16|imm8, 0xc8)
	t.setRange(modRM, 0xd8, 0xdf)
	t.setRange(rel8, 0xe0, 0xe3)
	t.set(rel32, 0xe8, 0xe9)
	t.set(rel8, 0xeb)
	for _, op := range []byte{0xc7, 0xf6, 0xf7, 0xff} {
		t[op] |= grouped
	}
	return t
}

// setArithmetic sets the eight opcodes of add, or, adc, sbb, and, sub, xor or cmp.
func setArithmetic(t *table, row byte) {
	toRM, toReg := writesRM, writesReg
	if row == 0x38 { // cmp
		toRM, toReg = 0, 0
	}
	t[row] = modRM | toRM | byteWide
	t[row+1] = modRM | toRM
	t[row+2] = modRM | toReg | byteWide
	t[row+3] = modRM | toReg
	t[row+4] = imm8
	t[row+5] = immZ
	t.set(invalid, row+6, row+7)
}

func twoByteMap() table {
	var t table
	t.setRange(modRM, 0x00, 0xff)
	t.set(escape, 0x38, 0x3a)
	t.set(invalid, 0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3b, 0x3c, 0x3d, 0x3e,
		0x3f)
	t.set(0, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0b, 0x0e, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37,
		0x77, 0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa)
	t.setRange(rel32, 0x80, 0x8f)
	t.setRange(0, 0xc8, 0xcf)
	t.set(modRM|imm8, 0x0f, 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc6)

	t.setRange(modRM|writesReg, 0x40, 0x4f)
	t.set(modRM|writesReg, 0x02, 0x03, 0x50, 0xaf, 0xb2, 0xb4, 0xb5, 0xb8, 0xbc, 0xbd, 0xbf, 0xb7,
		0xd7)
	t.set(modRM|writesReg|byteWide, 0xb6, 0xbe)
	t.set(modRM|imm8|writesReg, 0xc5)
	t.setRange(modRM|writesRM|byteWide, 0x90, 0x9f)
	t.set(modRM|writesRM|byteWide, 0xb0)
	t.set(modRM|writesRM|writesReg|byteWide, 0xc0)
	t.set(modRM|writesRM|writesReg, 0xc1)
	t.set(modRM|imm8|writesRM, 0xa4, 0xac, 0xba)
	t.set(modRM|writesRM, 0x00, 0x01, 0x20, 0x21, 0x78, 0xa5, 0xab, 0xad, 0xb1, 0xb3, 0xbb)
	// Groups and prefixes decide whether these write a general register: see Inst.destinations.
	t.set(modRM|writesRM, 0x1e, 0x7e, 0xae, 0xc7)
	t.set(modRM|writesReg, 0x2c, 0x2d)
	t[0x78] |= grouped
	return t
}

func oneByteKindMap() (k [256]Kind) {
	for op := 0x70; op <= 0x7f; op++ {
		k[op] = Jcc
	}
	for op := 0xe0; op <= 0xe3; op++ {
		k[op] = Loop
	}
	for _, op := range []byte{0xc2, 0xc3, 0xca, 0xcb, 0xcf} {
		k[op] = Ret
	}
	k[0xe8], k[0xe9], k[0xeb] = Call, Jmp, Jmp
	k[0xcc], k[0xf4] = Trap, Trap
	return k
}

func twoByteKindMap() (k [256]Kind) {
	for op := 0x80; op <= 0x8f; op++ {
		k[op] = Jcc
	}
	k[0x05], k[0x34] = Syscall, Syscall
	k[0x0b], k[0xb9], k[0xff] = Trap, Trap, Trap
	return k
}

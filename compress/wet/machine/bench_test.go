package machine

import "testing"

// page is a memory of which all is known.
type page [4096]byte

func (p *page) Load(addr uint64, to []byte) Knowledge {
	if at := int(addr & 4095); at+len(to) <= len(p) {
		copy(to, p[at:])
	}
	return Confirmed
}

func (p *page) Store(addr uint64, from []byte, _ Knowledge) {
	copy(p[addr&4095:], from)
}

func general(n, size uint8) Operand { return Operand{Class: General, Reg: n, Size: size} }

func memory(base, size uint8, disp int64) Operand {
	return Operand{Class: Mem, Size: size, Reg: base, Index: Zero, Segment: Zero, Disp: disp}
}

func immediate(size uint8) Operand { return Operand{Class: Immediate, Size: size} }

// mix is instructions in about the shares that programs run them in.
var mix = []Insn{
	{Op: Mov, Len: 4, Size: 8, Dst: general(RAX, 8), Src: memory(RSP, 8, 8)},
	{Op: Mov, Len: 3, Size: 8, Dst: general(RBX, 8), Src: general(RAX, 8)},
	{Op: Add, Len: 4, Size: 8, Dst: general(RBX, 8), Src: immediate(8), Imm: 8},
	{Op: Cmp, Len: 3, Size: 4, Dst: general(RBX, 4), Src: general(RDX, 4)},
	{Op: JumpIf, Len: 2, Size: 8, Condition: 5, Imm: 40},
	{Op: Mov, Len: 4, Size: 4, Dst: general(RCX, 4), Src: memory(RBX, 4, 16)},
	{Op: Mov, Len: 2, Size: 4, Dst: memory(RBX, 4, 24), Src: general(RCX, 4)},
	{Op: Lea, Len: 4, Size: 8, Dst: general(RSI, 8), Src: Operand{Class: Mem, Reg: RAX, Index: RBX,
		Scale: 2, Segment: Zero}},
	{Op: Test, Len: 2, Size: 4, Dst: general(RCX, 4), Src: general(RCX, 4)},
	{Op: JumpIf, Len: 2, Size: 8, Condition: 4, Imm: 40},
	{Op: Shl, Len: 4, Size: 8, Dst: general(RSI, 8), Src: immediate(1), Imm: 3},
	{Op: Mov, Len: 4, Size: 4, Dst: general(RDI, 4), Src: memory(RBX, 1, 16)},
	{Op: Xor, Len: 2, Size: 4, Dst: general(R8, 4), Src: general(R8, 4)},
	{Op: Push, Len: 1, Size: 8, Src: general(RBX, 8)},
	{Op: Pop, Len: 1, Size: 8, Dst: general(RBX, 8)},
	{Op: Sub, Len: 3, Size: 8, Dst: general(RBX, 8), Src: general(RSI, 8)},
}

const R8 = 8

// BenchmarkStep is one instruction of a mix as programs have it; the limit is 60 ns.
func BenchmarkStep(b *testing.B) {
	m := New()
	for n := range 16 {
		m.SetGeneral(n, uint64(n)<<8, Confirmed)
	}
	b.ReportAllocs()
	mem := &page{}
	for i := 0; b.Loop(); i++ {
		in := &mix[i%len(mix)]
		m.Step(in, 0x401000, mem)
	}
}

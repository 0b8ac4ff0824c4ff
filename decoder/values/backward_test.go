package values

import (
	"math/rand/v2"
	"testing"

	"wpptrace/compress/wet/machine"
)

// TestUndo: what an instruction's results say of what registers held before is what they held.
func TestUndo(t *testing.T) {
	register := func(n, size uint8) machine.Operand {
		return machine.Operand{Class: machine.General, Size: size, Reg: n}
	}
	number := machine.Operand{Class: machine.Immediate, Size: 8}
	sum := machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RBX, Index: machine.RCX,
		Scale: 2, Disp: -9, Segment: machine.Zero}
	alone := sum
	alone.Index = machine.Zero
	for name, c := range map[string]struct {
		in   machine.Insn
		back uint8 // a register that is written, or read, and known again
	}{
		"mov": {machine.Insn{Op: machine.Mov, Dst: register(0, 8), Src: register(6, 8)}, 6},
		"add": {machine.Insn{Op: machine.Add, Dst: register(0, 8), Src: register(6, 8)}, 0},
		"sub": {machine.Insn{Op: machine.Sub, Dst: register(0, 8), Src: number, Imm: -3}, 0},
		"xor": {machine.Insn{Op: machine.Xor, Dst: register(0, 8), Src: register(6, 8)}, 0},
		"neg": {machine.Insn{Op: machine.Neg, Dst: register(0, 8)}, 0},
		"lea": {machine.Insn{Op: machine.Lea, Dst: register(machine.RBX, 8), Src: sum},
			machine.RBX},
		"lea of one": {machine.Insn{Op: machine.Lea, Dst: register(machine.RBX, 8), Src: alone},
			machine.RBX},
		"imul": {machine.Insn{Op: machine.IMul, Dst: register(0, 8), Src: register(0, 8),
			Third: number, Imm: 6364136223846793005}, 0},
		"xchg":  {machine.Insn{Op: machine.Xchg, Dst: register(0, 8), Src: register(6, 8)}, 6},
		"bswap": {machine.Insn{Op: machine.BSwap, Dst: register(0, 8)}, 0},
	} {
		in := c.in
		in.Size, in.Len = 8, 4
		for range 20 {
			var before [16]uint64
			m, b := machine.New(), backwards{known: 0xffff, low: 0xffff}
			for n := range before {
				before[n] = rand.Uint64()
				m.SetGeneral(n, before[n], machine.Confirmed)
			}
			m.Step(&in, 0x1004, nothing{})
			for n := range before {
				b.values[n], _ = m.General(n)
			}
			b.undo(&executed{in: &in, next: 0x1004}, machine.New())
			if b.known>>c.back&1 == 0 {
				t.Fatalf("%s: register %d is not known", name, c.back)
			}
			for n := range before {
				if b.known>>n&1 != 0 && b.values[n] != before[n] {
					t.Fatalf("%s: register %d is %#x, and was %#x", name, n, b.values[n], before[n])
				}
			}
		}
	}
}

// TestZero: a comparison that has come to nothing says what a register holds.
func TestZero(t *testing.T) {
	b := backwards{known: 1 << machine.RCX, low: 1 << machine.RCX}
	b.values[machine.RCX] = 77
	operand := machine.Operand{Class: machine.General, Size: 8}
	in := machine.Insn{Op: machine.Cmp, Size: 8, Dst: operand, Src: operand}
	in.Src.Reg = machine.RCX
	b.zero(&in)
	in.Op, in.Dst.Reg = machine.Sub, machine.RDX
	b.zero(&in)
	in.Op, in.Dst.Reg, in.Src.Reg = machine.Test, machine.RSI, machine.RSI
	b.zero(&in)
	want := [16]uint64{machine.RAX: 77, machine.RCX: 77}
	known := uint16(1<<machine.RAX | 1<<machine.RCX | 1<<machine.RDX | 1<<machine.RSI)
	if b.values != want || b.known != known {
		t.Errorf("%x of %x", b.values, b.known)
	}
}

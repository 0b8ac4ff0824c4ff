package values

import (
	"math/rand/v2"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/loader/loads"
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
			m, b := machine.New(), allKnown()
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
	const rcx = 1 << machine.RCX
	b := backwards{known: rcx, low: rcx, least: rcx}
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

// TestZeroOfBytes: of what is narrower than a register so much is known, and no more.
func TestZeroOfBytes(t *testing.T) {
	b := backwards{}
	in := machine.Insn{Op: machine.Test, Size: 1,
		Dst: machine.Operand{Class: machine.General, Size: 1, Reg: machine.RBX}}
	in.Src = in.Dst
	b.zero(&in)
	if !b.holds(machine.RBX, 1) || b.holds(machine.RBX, 2) || b.holds(machine.RBX, 4) {
		t.Errorf("behind a test of a byte %x, %x and %x are known", b.least, b.low, b.known)
	}
	for name, c := range map[string]struct {
		op   machine.Op
		size uint8 // of the source
		v    uint64
		want uint64
		not  bool // more has to be known
	}{
		"movzx": {machine.Mov, 1, 0xff80, 0x80, false},
		"movsx": {machine.MovSX, 1, 0x180, 0xffffff80, false},
		"mov":   {machine.Mov, 4, 7, 0, true},
	} {
		b := backwards{least: 1, values: [16]uint64{c.v}}
		in := machine.Insn{Op: c.op, Dst: machine.Operand{Class: machine.General, Size: 4},
			Src: machine.Operand{Class: machine.General, Size: c.size, Reg: machine.RSI}}
		b.complete(&in)
		if b.holds(0, 8) == c.not || !c.not && b.values[0] != c.want {
			t.Errorf("%s: %x of %x", name, b.values[0], b.known)
		}
	}
}

// TestCompared: what is in memory is known by a comparison that finds it equal.
func TestCompared(t *testing.T) {
	in := machine.Insn{Op: machine.Cmp, Size: 4, Imm: 9,
		Dst: machine.Operand{Class: machine.Mem, Size: 4},
		Src: machine.Operand{Class: machine.Immediate, Size: 4}}
	for _, equal := range []bool{true, false} {
		b := backwards{zeroed: equal}
		if v, ok := b.compared(&in); ok != equal || ok && v != 9 {
			t.Errorf("it is %d, %v", v, ok)
		}
	}
	in.Src, in.Dst = in.Dst, machine.Operand{Class: machine.General, Size: 4, Reg: machine.RDX}
	b := backwards{zeroed: true}
	if _, ok := b.compared(&in); ok {
		t.Error("it is known by a register that is not")
	}
	b.set(machine.RDX, 5, 4)
	if v, ok := b.compared(&in); !ok || v != 5 {
		t.Errorf("it is %d, %v", v, ok)
	}
}

// TestBehindStores: what was read is known before a store that goes, as is foreseen, elsewhere, but
// not for sure, and what it overwrites is not.
func TestBehindStores(t *testing.T) {
	const at, other = 0x1000, 0x2000
	in := machine.Insn{Op: machine.Mov, Size: 8, Len: 3,
		Dst: machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RAX, Index: machine.Zero,
			Segment: machine.Zero},
		Src: machine.Operand{Class: machine.General, Size: 8, Reg: machine.RDX}}
	back := func(stores []loads.Read) backwards {
		b := allKnown()
		b.lose(1 << machine.RAX)
		b.reads = []loads.Read{readOf(at, 8, 1), readOf(other, 8, 2)}
		b.undo(&executed{in: &in, next: 0x403, stores: stores}, machine.New())
		return b
	}
	b := back(nil)
	if _, ok := b.word(other, 8); ok || !b.stuck {
		t.Errorf("stuck: %v, but memory is known", b.stuck)
	}
	b = back([]loads.Read{{Addr: at + 4, Size: 8}})
	if v, ok := b.word(other, 8); !ok || v != 2 || !b.guessed || len(b.reads) > 0 {
		t.Errorf("it is %d, %v, guessed: %v", v, ok, b.guessed)
	}
	if _, ok := b.word(at, 8); ok {
		t.Error("what is stored to is known before")
	}
	if v, ok := b.word(at, 4); !ok || v != 1 {
		t.Errorf("before it there is %d, %v", v, ok)
	}
}

// TestUndoHeld: what an instruction has made of two registers says what one of them held, by the
// other: for sure, where that is confirmed.
func TestUndoHeld(t *testing.T) {
	register := func(n, size uint8) machine.Operand {
		return machine.Operand{Class: machine.General, Size: size, Reg: n}
	}
	sum := machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RBX, Index: machine.RSI,
		Scale: 2, Disp: -9, Segment: machine.Zero}
	for _, size := range []uint8{4, 8} {
		for name, in := range map[string]machine.Insn{
			"add":    {Op: machine.Add, Src: register(machine.RBX, size)},
			"sub":    {Op: machine.Sub, Src: register(machine.RBX, size)},
			"xor":    {Op: machine.Xor, Src: register(machine.RBX, size)},
			"cmovne": {Op: machine.MovIf, Src: register(machine.RBX, size), Condition: 5},
			"lea":    {Op: machine.Lea, Src: sum},
		} {
			in.Dst, in.Size, in.Len = register(machine.RAX, size), size, 4
			sure := uint16(rand.IntN(2)) * 0xffff
			before := &held{known: 0xffff &^ (1 << machine.RBX), sure: sure}
			m, b := machine.New(), allKnown()
			for n := range before.values {
				before.values[n] = rand.Uint64()
				m.SetGeneral(n, before.values[n], machine.Confirmed)
			}
			m.SetFlags(0, machine.Confirmed)
			m.Step(&in, 0x1004, nothing{})
			for n := range before.values {
				b.values[n], _ = m.General(n)
			}
			b.lose(1<<machine.RBX | 1<<machine.RSI)
			if b.held = before; !b.asks(&in) {
				t.Fatalf("%s of %d bytes asks for nothing", name, size)
			}
			b.undo(&executed{in: &in, next: 0x1004}, machine.New())
			unsure := b.unsure>>machine.RBX&1 != 0
			if shift := 64 - 8*size; !b.holds(machine.RBX, size) || unsure != (sure == 0) ||
				(b.values[machine.RBX]^before.values[machine.RBX])<<shift != 0 {
				t.Errorf("%s of %d bytes: rbx is %#x, of %x, unsure %x, and was %#x", name,
					size, b.values[machine.RBX], b.low, b.unsure, before.values[machine.RBX])
			}
		}
	}
	// what has changed memory is known by itself, and the register of the address stays
	in := machine.Insn{Op: machine.Add, Size: 8, Len: 4, Src: register(machine.RBX, 8),
		Dst: machine.Operand{Class: machine.Mem, Size: 8, Reg: machine.RBP, Index: machine.Zero,
			Segment: machine.Zero}}
	b := allKnown()
	b.lose(1 << machine.RBX)
	b.values[machine.RBP] = 0x1000
	if b.held = (&held{known: 0xffff, values: [16]uint64{machine.RBX: 7}}); !b.asks(&in) {
		t.Error("what changes memory by a register that is not known asks for nothing")
	}
	b.learn(&in)
	b.undo(&executed{in: &in, next: 0x1004}, machine.New())
	if !b.holds(machine.RBX, 8) || b.values[machine.RBX] != 7 || b.unsure != 1<<machine.RBX {
		t.Errorf("rbx is %d of %x, unsure %x", b.values[machine.RBX], b.known, b.unsure)
	}
	// where nothing is moved, or that cannot be told, nothing is known
	in = machine.Insn{Op: machine.MovIf, Condition: 5, Size: 8, Len: 4,
		Dst: register(machine.RAX, 8), Src: register(machine.RBX, 8)}
	b = allKnown()
	b.lose(1 << machine.RBX)
	b.values[machine.RAX] = 7
	b.held = &held{known: 1, values: [16]uint64{7}}
	b.undo(&executed{in: &in, next: 0x1004}, machine.New())
	if b.holds(machine.RBX, 1) {
		t.Error("what is not moved is known")
	}
}

// TestZeroOfMoves: a register that is moved where it is not zero was zero where the result is.
func TestZeroOfMoves(t *testing.T) {
	operand := machine.Operand{Class: machine.General, Size: 4, Reg: machine.RCX}
	test := machine.Insn{Op: machine.Test, Size: 4, Dst: operand, Src: operand}
	move := machine.Insn{Op: machine.MovIf, Size: 8, Condition: ifEqual ^ 1,
		Dst: machine.Operand{Class: machine.General, Size: 8},
		Src: machine.Operand{Class: machine.General, Size: 8, Reg: machine.RCX}}
	says := func(test, move machine.Insn) bool {
		return tests([]executed{{in: &test}, {in: &move}}, 1)
	}
	if !says(test, move) {
		t.Error("a move of what has been tested says nothing")
	}
	other, wide, equal := test, test, move
	other.Dst.Reg = machine.RDX
	wide.Size, wide.Dst.Size, wide.Src.Size = 8, 8, 8
	narrow := move
	narrow.Size, narrow.Dst.Size, narrow.Src.Size = 4, 4, 4
	equal.Condition = ifEqual
	if says(other, move) || says(wide, narrow) || says(test, equal) {
		t.Error("a move of something else does")
	}
}

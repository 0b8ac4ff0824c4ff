package machine

import (
	"fmt"
	"testing"
)

// What an instruction does not use may be unknown: all that it writes is known nevertheless, as
// well as where it goes. What it uses may not, but where its value happens not to matter.
func TestUses(t *testing.T) {
	tight := map[Op]bool{Mov: true, Add: true, Lea: true, Push: true, Pop: true, IMul: true,
		Leave: true, Return: true, Jump: true, Stos: true}
	for op := NoOp; op < firstVector; op++ {
		for _, size := range []uint8{1, 2, 4, 8} {
			if op == MulX && size < 4 {
				continue
			}
			in := Insn{Op: op, Len: 3, Size: size, Imm: 3}
			for _, in.Dst = range []Operand{general(RBX, size), memory(RDX, size, 8)} {
				for _, in.Src = range sources(op, size) {
					for _, in.Third = range []Operand{immediate(size), general(9, size)} {
						for in.Repeat = range uint8(RepeatUnequal) {
							checkUses(t, &in, tight[op] && size == 8 && in.Repeat == Once &&
								in.Dst.Class == General && in.Third.Class == Immediate)
						}
					}
				}
			}
		}
	}
}

func sources(op Op, size uint8) []Operand {
	switch op {
	case Lea, Movs, Cmps, Lods:
		return []Operand{memory(RSI, size, 0)}
	case Pop, Leave, Return:
		return []Operand{{}}
	}
	return []Operand{general(RSI, size), general(RBX, size), memory(RDI, size, 16),
		immediate(size)}
}

func checkUses(t *testing.T, in *Insn, tight bool) {
	used := in.Uses().General
	all := known(in, 0)
	if got := known(in, ^uint16(used)); got != all {
		t.Errorf("%+v uses %x: without the others %s is known, of %s", in, used, got, all)
	}
	for n := range 16 {
		if tight && used>>n&1 == 1 && known(in, 1<<n) == all {
			t.Errorf("%+v uses %d, and does not need it", in, n)
		}
	}
}

// known says what is known behind an instruction if some registers are unknown before it: of what
// it has written, its accesses and where it goes.
func known(in *Insn, unknown uint16) string {
	m := New()
	for n := range 16 {
		m.SetGeneral(n, 0x800+uint64(n), Confirmed)
	}
	m.SetGeneral(RCX, 2, Confirmed)
	m.SetFlags(0, Confirmed)
	m.Forget(Set{General: unknown})
	out := m.Step(in, 0x1000, &page{})
	s := fmt.Sprintf("way %d %d, flags %x", out.Way, out.Known, m.flags.known)
	for n := range 16 {
		if m.Written()>>n&1 == 1 {
			_, k := m.General(n)
			s += fmt.Sprintf(", register %d %d", n, k)
		}
	}
	for _, a := range m.Accesses() {
		s += fmt.Sprintf(", access %d %d", a.At, a.Known)
	}
	return s
}

// The same of what has vectors.
func TestUsesOfVectors(t *testing.T) {
	vector := func(n, size uint8) Operand { return Operand{Class: Vector, Reg: n, Size: size} }
	count := 0
	for op := firstVector; op < ops; op++ {
		switch op {
		case VZeroUpper, VMoveMask, LoadMXCSR, StoreMXCSR: // of these Dst is no vector
			continue
		}
		for _, size := range []uint8{4, 8, 16, 32} {
			for _, lane := range []uint8{1, 2, 4, 8} {
				in := Insn{Op: op, Len: 4, Size: size, Lane: lane, Imm: 1, Dst: vector(3, size),
					Src: vector(6, size), Third: vector(9, size)}
				if in.check() != nil {
					continue
				}
				count++
				used := in.Uses().Vectors
				all, got := knownVectors(&in, 0), knownVectors(&in, ^uint16(used))
				for n := range 16 {
					if in.WrittenVectors()>>n&1 == 1 && all[n] != got[n] {
						t.Errorf("%+v uses %x: without the others %v is known, of %v", in, used,
							got[n], all[n])
					}
				}
			}
		}
	}
	if count < 500 {
		t.Errorf("%d instructions", count)
	}
}

// knownVectors says what is known of vector registers behind an instruction if some are unknown
// before it: of the bytes of its size.
func knownVectors(in *Insn, unknown uint16) (known [16][32]Knowledge) {
	m := New()
	m.SetMXCSR(0x1f80, Confirmed)
	for n := range 16 {
		k := Confirmed
		if unknown>>n&1 == 1 {
			k = Unknown
		}
		m.SetVector(n, [32]byte{1, 2, 3}, k)
	}
	m.Step(in, 0x1000, &page{})
	for n := range known {
		_, k := m.Vector(n)
		copy(known[n][:in.Size], k[:in.Size])
	}
	return known
}

// TestNames: a call has the address in it of what it calls, or of the slot that says that.
func TestNames(t *testing.T) {
	slot := Operand{Class: Mem, Size: 8, Reg: Next, Index: Zero, Segment: Zero, Disp: 0x20}
	field := slot
	field.Reg = RBX
	for name, c := range map[string]struct {
		in   Insn
		want uint64
		ok   bool
	}{
		"call":    {Insn{Op: Call, Src: Operand{Class: Immediate}, Imm: -0x10}, 0xff0, true},
		"jump":    {Insn{Op: Jump, Src: Operand{Class: Immediate}, Imm: 0x10}, 0x1010, true},
		"if":      {Insn{Op: JumpIf, Imm: 0x10}, 0x1010, true},
		"slot":    {Insn{Op: Call, Src: slot}, 0x1020, true},
		"field":   {Insn{Op: Call, Src: field}, 0, false},
		"pointer": {Insn{Op: Jump, Src: Operand{Class: General, Reg: RAX}}, 0, false},
		"return":  {Insn{Op: Return}, 0, false},
	} {
		if got, ok := c.in.Names(0x1000); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %x, %v", name, got, ok)
		}
	}
}

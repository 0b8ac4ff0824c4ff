package machine

import (
	"bytes"
	"testing"
)

// run runs instructions on a machine that knows its registers: each is its number times 0x1111.
func run(prepare func(*Machine), insns ...Insn) *Machine {
	m := New()
	for n := range 16 {
		m.SetGeneral(n, uint64(n)*0x1111, Confirmed)
	}
	m.SetFlags(0, Confirmed)
	prepare(m)
	mem := &page{}
	for i := range insns {
		m.Step(&insns[i], 0x1000, mem)
	}
	return m
}

// TestKnowledge: what is known of a result is the least of what it depends on, and no less.
func TestKnowledge(t *testing.T) {
	forget := func(registers uint16) func(*Machine) {
		return func(m *Machine) { m.Forget(Set{General: registers, Flags: AllFlags}) }
	}
	doubt := func(n int) func(*Machine) {
		return func(m *Machine) { m.SetGeneral(n, 7, Unconfirmed) }
	}
	two := func(op Op, dst, src uint8) Insn {
		return Insn{Op: op, Size: 8, Dst: general(dst, 8), Src: general(src, 8)}
	}
	with := func(op Op, dst uint8, imm int64) Insn {
		return Insn{Op: op, Size: 8, Dst: general(dst, 8), Src: immediate(8), Imm: imm}
	}
	for _, test := range []struct {
		name    string
		prepare func(*Machine)
		insns   []Insn
		in      int // a register
		want    Knowledge
	}{
		{"sum of what is known", doubt(5), []Insn{two(Add, 0, 1)}, 0, Confirmed},
		{"sum with a guess", doubt(1), []Insn{two(Add, 0, 1)}, 0, Unconfirmed},
		{"sum with what is unknown", forget(1 << 1), []Insn{two(Add, 0, 1)}, 0, Unknown},
		{"copy of a guess", doubt(1), []Insn{two(Mov, 0, 1)}, 0, Unconfirmed},
		{"xor of itself", forget(1), []Insn{two(Xor, 0, 0)}, 0, Confirmed},
		{"sub of itself", forget(1), []Insn{two(Sub, 0, 0)}, 0, Confirmed},
		{"and of itself", forget(1), []Insn{two(And, 0, 0)}, 0, Unknown},
		{"sbb of itself", forget(1), []Insn{two(Cmp, 1, 2), two(Sbb, 0, 0)}, 0, Confirmed},
		{"sbb of itself, of no flag", forget(1), []Insn{two(Sbb, 0, 0)}, 0, Unknown},
		{"and with 0", forget(1), []Insn{with(And, 0, 0)}, 0, Confirmed},
		{"or with -1", forget(1), []Insn{with(Or, 0, -1)}, 0, Confirmed},
		{"cmov of no flag", forget(1 << 5), []Insn{two(MovIf, 0, 1)}, 0, Unknown},
		{"cmov that does not move", forget(1 << 1), []Insn{two(Cmp, 2, 3),
			{Op: MovIf, Size: 8, Condition: 4, Dst: general(0, 8), Src: general(1, 8)}}, 0,
			Confirmed},
		{"byte into an unknown register", forget(1),
			[]Insn{{Op: Mov, Size: 1, Dst: general(0, 1), Src: immediate(1)}}, 0, Unknown},
		{"zero-extended from there", forget(1),
			[]Insn{{Op: Mov, Size: 1, Dst: general(0, 1), Src: immediate(1)},
				{Op: Mov, Size: 4, Dst: general(0, 4), Src: general(0, 1)}}, 0, Confirmed},
		{"second byte", forget(1),
			[]Insn{{Op: Mov, Size: 1, Dst: Operand{Class: High, Size: 1}, Src: immediate(1)},
				{Op: Mov, Size: 4, Dst: general(1, 4), Src: Operand{Class: High, Size: 1}}}, 1,
			Confirmed},
		{"load from an unknown address", forget(1),
			[]Insn{{Op: Mov, Size: 8, Dst: general(1, 8), Src: memory(RAX, 8, 0)}}, 1, Unknown},
		{"load from a guess", doubt(0),
			[]Insn{{Op: Mov, Size: 8, Dst: general(1, 8), Src: memory(RAX, 8, 0)}}, 1, Unconfirmed},
		{"shift by what is unknown", forget(1 << 1),
			[]Insn{{Op: Shl, Size: 8, Dst: general(0, 8), Src: general(1, 1)}}, 0, Unknown},
		{"undefined flag", func(*Machine) {}, []Insn{two(And, 0, 1),
			{Op: LahF, Size: 1}, {Op: Mov, Size: 4, Dst: general(2, 4),
				Src: Operand{Class: High, Size: 1}}}, 2, Unknown},
	} {
		if _, got := run(test.prepare, test.insns...).General(test.in); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestUnknownStore(t *testing.T) {
	m := run(func(m *Machine) { m.Forget(Set{General: 1}) },
		Insn{Op: Mov, Size: 8, Dst: memory(RAX, 8, 0), Src: general(1, 8)})
	if a := m.Accesses(); len(a) != 1 || !a[0].Write || a[0].At != Unknown || a[0].Size != 8 {
		t.Errorf("accesses %+v", a)
	}
	m = run(func(m *Machine) { m.Forget(Set{General: 1 << RCX}) },
		Insn{Op: Stos, Size: 8, Repeat: RepeatEqual})
	if a := m.Accesses(); len(a) != 1 || !a[0].Write || a[0].Size != 0 {
		t.Errorf("accesses %+v", a)
	}
	if v, k := m.General(RCX); v != 0 || k != Confirmed {
		t.Errorf("RCX is %d, %d behind a repeated store", v, k)
	}
}

// TestLongAccess: the rounds of a string instruction are one access, with all its bytes.
func TestLongAccess(t *testing.T) {
	m := New()
	m.SetFlags(0, Confirmed)
	mem := &page{}
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	for range 2 { // again, in the same room
		m.SetGeneral(RSI, 0x100, Confirmed)
		m.SetGeneral(RDI, 0x800, Confirmed)
		m.SetGeneral(RCX, 50, Confirmed)
		src := memory(RSI, 8, 0)
		m.Step(&Insn{Op: Movs, Size: 8, Repeat: RepeatEqual, Src: src}, 0, mem)
		a := m.Accesses()
		if len(a) != 2 || !bytes.Equal(a[0].Data(), mem[0x100:0x290]) ||
			!bytes.Equal(a[1].Data(), mem[0x800:0x990]) || !a[1].Write {
			t.Fatalf("accesses %+v", a)
		}
	}
}

// TestEndOfString: a string is as long as it is, however many rounds there might be.
func TestEndOfString(t *testing.T) {
	for _, test := range []struct {
		name string
		mem  Memory
		want Knowledge
	}{{"known", &page{5: 1}, Confirmed}, {"unknown", nowhere{}, Unknown}} {
		m := New()
		m.SetFlags(0, Confirmed)
		m.SetGeneral(RDI, 0, Confirmed)
		m.SetGeneral(RAX, 1, Confirmed)
		m.SetGeneral(RCX, ^uint64(0), Confirmed)
		m.Step(&Insn{Op: Scas, Size: 1, Repeat: RepeatUnequal}, 0, test.mem)
		end, k := m.General(RDI)
		left, kl := m.General(RCX)
		if k != test.want || kl != test.want || k == Confirmed && (end != 6 || ^left != 6) {
			t.Errorf("%s: ends at %d (%d), %x are left (%d)", test.name, end, k, left, kl)
		}
	}
	m := New() // no rounds, wherever they would be
	m.SetGeneral(RCX, 0, Confirmed)
	m.Step(&Insn{Op: Stos, Size: 1, Repeat: RepeatEqual}, 0, nil)
	if len(m.Accesses()) != 0 || m.Written() != 0 {
		t.Errorf("no rounds make %+v", m.Accesses())
	}
}

type nowhere struct{}

func (nowhere) Load(uint64, []byte) Knowledge   { return Unknown }
func (nowhere) Store(uint64, []byte, Knowledge) {}

// TestRounding: floating-point numbers are as sure as what is known of how they are rounded.
func TestRounding(t *testing.T) {
	x := Operand{Class: Vector, Size: 8, Reg: 1}
	add := Insn{Op: FAdd, Size: 8, Lane: 8, Dst: x, Src: x, Third: x}
	for _, test := range []struct {
		mxcsr uint32
		want  Knowledge
	}{{0x1f80, Confirmed}, {0x1fa1, Confirmed}, {0x1f80 | 1<<13, Unknown}, {0x9fc0, Unknown}} {
		m := New()
		m.SetVector(1, [32]byte{7: 0x40}, Confirmed)
		m.SetMXCSR(test.mxcsr, Confirmed)
		m.Step(&add, 0, nil)
		v, k := m.Vector(1)
		if k[7] != test.want || k[0] != test.want || k[8] != Confirmed || v[7] != 0x40 ||
			v[6] != 0x10 {
			t.Errorf("MXCSR %x: %x, known %v", test.mxcsr, *v, *k)
		}
	}
}

func TestFault(t *testing.T) {
	for _, divisor := range []uint64{0, 1} {
		m := run(func(m *Machine) {
			m.SetGeneral(RDX, 1, Confirmed)
			m.SetGeneral(RBX, divisor, Confirmed)
		})
		before := m.general.value
		out := m.Step(&Insn{Op: Div, Size: 8, Src: general(RBX, 8)}, 0, &page{})
		before[Next] = 0
		if out.Way != Faults || m.general.value != before {
			t.Errorf("division by %d: %+v", divisor, out)
		}
	}
}

func TestDoubt(t *testing.T) {
	m := run(func(*Machine) {})
	m.Doubt()
	if _, k := m.General(3); k != Unconfirmed {
		t.Errorf("a register is %d", k)
	}
	if _, known, confirmed := m.Flags(); known != AllFlags || confirmed != 0 {
		t.Errorf("flags known %x, confirmed %x", known, confirmed)
	}
}

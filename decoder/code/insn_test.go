package code

import (
	"bytes"
	"encoding/hex"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/loader/x86"
)

func decode(t *testing.T, text string) machine.Insn {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	in, ok := x86.Decode(raw)
	if !ok || int(in.Len) != len(raw) {
		t.Fatalf("%s is no instruction", text)
	}
	return Insn(&in, raw)
}

func general(n, size uint8) machine.Operand {
	return machine.Operand{Class: machine.General, Size: size, Reg: n}
}

func memory(base, size uint8, disp int64) machine.Operand {
	return machine.Operand{Class: machine.Mem, Size: size, Reg: base, Index: machine.Zero,
		Segment: machine.Zero, Disp: disp}
}

var immediate4 = machine.Operand{Class: machine.Immediate, Size: 4}

func TestInsn(t *testing.T) {
	fs := memory(machine.Zero, 8, 0x28)
	fs.Segment = machine.FS
	short := memory(machine.RAX, 4, 0)
	short.Short = true
	for _, test := range []struct {
		asm, code string
		want      machine.Insn
	}{
		{"mov %fs:0x28,%rax", "64488b042528000000",
			machine.Insn{Op: machine.Mov, Size: 8, Dst: general(0, 8), Src: fs}},
		{"mov 0x10(%rip),%eax", "8b0510000000", machine.Insn{Op: machine.Mov, Size: 4,
			Dst: general(0, 4), Src: memory(machine.Next, 4, 0x10)}},
		{"mov (%eax),%ecx", "678b08",
			machine.Insn{Op: machine.Mov, Size: 4, Dst: general(1, 4), Src: short}},
		{"movzbl %ah,%eax", "0fb6c4", machine.Insn{Op: machine.Mov, Size: 4, Dst: general(0, 4),
			Src: machine.Operand{Class: machine.High, Size: 1}}},
		{"add $-1,%ecx", "83c1ff", machine.Insn{Op: machine.Add, Size: 4, Dst: general(1, 4),
			Src: immediate4, Imm: -1}},
		{"imul $3,(%rdi),%eax", "6b0703", machine.Insn{Op: machine.IMul, Size: 4,
			Dst: general(0, 4), Src: memory(machine.RDI, 4, 0), Third: immediate4, Imm: 3}},
		{"lock xadd %eax,(%rdi)", "f00fc107", machine.Insn{Op: machine.XAdd, Size: 4, Locked: true,
			Dst: memory(machine.RDI, 4, 0), Src: general(0, 4)}},
		{"xchg %eax,(%rdi)", "8707", machine.Insn{Op: machine.Xchg, Size: 4, Locked: true,
			Dst: memory(machine.RDI, 4, 0), Src: general(0, 4)}},
		{"repz cmpsb", "f3a6", machine.Insn{Op: machine.Cmps, Size: 1,
			Repeat: machine.RepeatEqual, Src: memory(machine.RSI, 1, 0)}},
		{"jne +4", "7504", machine.Insn{Op: machine.JumpIf, Size: 8, Condition: 5, Imm: 4}},
		{"call +4", "e804000000", machine.Insn{Op: machine.Call, Size: 8, Imm: 4,
			Src: machine.Operand{Class: machine.Immediate, Size: 8}}},
		{"notrack jmp *%rax", "3effe0", machine.Insn{Op: machine.Jump, Size: 8,
			Src: general(0, 8)}},
		{"ret $8", "c20800", machine.Insn{Op: machine.Return, Size: 8, Imm: 8}},
		{"endbr64", "f30f1efa", machine.Insn{Op: machine.NoOp}},
	} {
		test.want.Len = uint8(len(test.code) / 2)
		if got := decode(t, test.code); got != test.want {
			t.Errorf("%s:\n%+v, want\n%+v", test.asm, got, test.want)
		}
	}
}

func TestVectors(t *testing.T) {
	x := func(n, size uint8) machine.Operand {
		return machine.Operand{Class: machine.Vector, Size: size, Reg: n}
	}
	for _, test := range []struct {
		asm, code string
		want      machine.Insn
	}{
		{"movaps %xmm1,(%rdi)", "0f290f", machine.Insn{Op: machine.VMov, Size: 16, Lane: 1,
			Dst: memory(machine.RDI, 16, 0), Src: x(1, 16)}},
		{"movq %xmm1,(%rdi)", "660fd60f", machine.Insn{Op: machine.VMovOut, Size: 8, Lane: 1,
			Dst: memory(machine.RDI, 8, 0), Src: x(1, 8)}},
		{"movd %edi,%xmm1", "660f6ecf", machine.Insn{Op: machine.VMovZero, Size: 4, Lane: 1,
			Dst: x(1, 4), Src: general(7, 4)}},
		{"addsd (%rdi),%xmm1", "f20f580f", machine.Insn{Op: machine.FAdd, Size: 8, Lane: 8,
			Dst: x(1, 8), Third: x(1, 8), Src: memory(machine.RDI, 8, 0)}},
		{"vaddsd (%rdi),%xmm2,%xmm1", "c5eb580f", machine.Insn{Op: machine.FAdd, Size: 8, Lane: 8,
			Clears: true, Dst: x(1, 8), Third: x(2, 8), Src: memory(machine.RDI, 8, 0)}},
		{"vpaddd %ymm3,%ymm2,%ymm1", "c5edfecb", machine.Insn{Op: machine.VAdd, Size: 32, Lane: 4,
			Clears: true, Dst: x(1, 32), Third: x(2, 32), Src: x(3, 32)}},
		{"psrldq $3,%xmm1", "660f73d903", machine.Insn{Op: machine.VShrBytes, Size: 16, Lane: 1,
			Imm: 3, Dst: x(1, 16), Third: x(1, 16)}},
		{"cvttsd2si %xmm1,%rax", "f2480f2cc1", machine.Insn{Op: machine.FToInt, Size: 8, Lane: 8,
			Dst: general(0, 8), Src: x(1, 8)}},
		{"vzeroupper", "c5f877", machine.Insn{Op: machine.VZeroUpper, Size: 32, Lane: 1,
			Clears: true}},
		{"ldmxcsr (%rdi)", "0fae17", machine.Insn{Op: machine.LoadMXCSR, Size: 4, Lane: 4,
			Src: memory(machine.RDI, 4, 0)}},
	} {
		test.want.Len = uint8(len(test.code) / 2)
		if got := decode(t, test.code); got != test.want {
			t.Errorf("%s:\n%+v, want\n%+v", test.asm, got, test.want)
		}
	}
}

func TestOpaque(t *testing.T) {
	all := machine.Set{General: 0xffef, Memory: true, Flags: machine.AllFlags, Vectors: 0xffff}
	for _, test := range []struct {
		asm, code string
		cause     machine.Cause
		want      machine.Set
		dst       machine.Class
	}{
		{"cpuid", "0fa2", machine.Identity, machine.Set{General: 0xf}, machine.None},
		{"rdtsc", "0f31", machine.Clock, machine.Set{General: 5}, machine.None},
		{"syscall", "0f05", machine.System, machine.Set{General: 0x803, Memory: true},
			machine.None},
		{"mov %fs,%eax", "8ce0", machine.Segments, machine.Set{General: 1}, machine.None},
		{"push %fs", "0fa0", machine.Segments, machine.Set{General: 0x10, Memory: true},
			machine.None},
		{"fstpl (%rdi)", "dd1f", machine.X87, machine.Set{}, machine.Mem},
		{"fxsave (%rdi)", "0fae07", machine.State, machine.Set{Memory: true, Vectors: 0xffff},
			machine.None},
		{"xsavec (%rdi)", "0fc727", machine.State, machine.Set{Memory: true, Vectors: 0xffff},
			machine.None},
		{"lods with 32-bit addresses", "67ac", machine.Addresses, machine.Set{General: 0x41},
			machine.None},
		{"bswap %ax", "660fc8", machine.NotKnown, machine.Set{General: 1}, machine.None},
		{"in (%dx),%al", "ec", machine.NotKnown, all, machine.None},
	} {
		in := decode(t, test.code)
		got := in.Opaque()
		if test.cause == machine.X87 && in.Dst.Size != 8 {
			t.Errorf("%s writes %d bytes", test.asm, in.Dst.Size)
		}
		if in.Op != machine.Opaque || in.Cause != test.cause || got != test.want ||
			in.Dst.Class != test.dst {
			t.Errorf("%s: %+v writes %+v, want %v %+v", test.asm, in, got, test.cause, test.want)
		}
	}
}

// TestFar: where an instruction reads is not said if that is not what its operand says: EVEX scales
// displacements, and a vector has the indices of a gather.
func TestFar(t *testing.T) {
	for code, isFar := range map[string]bool{
		"62f1fe486f4f01": true,  // vmovdqu64 0x40(%rdi),%zmm1
		"c4e26d904c8704": true,  // vpgatherdd %ymm2,4(%rdi,%ymm0,4),%ymm1
		"d94704":         false, // flds 4(%rdi)
	} {
		in := decode(t, code)
		if in.Op != machine.Opaque || in.Src.Class != machine.Mem ||
			(in.Src.Segment == machine.GS) != isFar {
			t.Errorf("%s: %+v", code, in)
		}
	}
}

// Whatever an instruction is, files can have it: one that cannot be read makes all of a file's
// values unreadable, as vzeroupper did.
func FuzzInsn(f *testing.F) {
	for _, text := range []string{"c5f877", "f30f1efa", "66480f3a16c101", "c4e2751001", "62f17c4828"} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for len(raw) > 0 {
			in, ok := x86.Decode(raw)
			if !ok {
				return
			}
			insn := Insn(&in, raw)
			want := machine.AppendInsn(nil, &insn)
			got, rest, err := machine.ParseInsn(want)
			if err != nil || len(rest) > 0 || !bytes.Equal(machine.AppendInsn(nil, &got), want) {
				t.Fatalf("%x: %+v; read back %+v, %v", raw[:in.Len], insn, got, err)
			}
			raw = raw[in.Len:]
		}
	})
}

package x86

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOperands(t *testing.T) {
	const next = 0x2000
	mem := func(base, index int8, scale uint8, disp int64, size uint8) Operand {
		return Operand{Mem: true, Reg: -1, Base: base, Index: index, Scale: scale, Disp: disp,
			Size: size}
	}
	reg := func(number int8,
		size uint8) Operand {
		return Operand{Reg: number, Base: -1, Index: -1, Size: size}
	}
	for _, test := range []struct {
		code, text string
		reg        int8
		rm         Operand
		imm        int
	}{
		{"90", "nop", -1, none, 1},
		{"b8 01 00 00 00", "mov $1,%eax", -1, none, 1},
		{"89 c8", "mov %ecx,%eax", 1, reg(0, 4), 2},
		{"4c 89 e8", "mov %r13,%rax", 13, reg(0, 8), 3},
		{"49 89 c5", "mov %rax,%r13", 0, reg(13, 8), 3},
		{"66 89 07", "mov %ax,(%rdi)", 0, mem(7, -1, 1, 0, 2), 3},
		{"8a 45 fc", "mov -4(%rbp),%al", 0, mem(5, -1, 1, -4, 1), 3},
		{"48 8b 05 10 00 00 00", "mov 0x10(%rip),%rax", 0,
			Operand{Mem: true, Reg: -1, Base: -1, Index: -1, Scale: 1, RIP: true, Disp: next + 0x10,
				Size: 8}, 7},
		{"8b 04 25 10 00 00 00", "mov 0x10,%eax", 0, mem(-1, -1, 1, 0x10, 4), 7},
		{"48 63 04 87", "movslq (%rdi,%rax,4),%rax", 0, mem(7, 0, 4, 0, 4), 4},
		{"ff 24 c5 00 10 40 00", "jmp *0x401000(,%rax,8)", 4, mem(-1, 0, 8, 0x401000, 8), 7},
		{"41 ff 54 24 08", "call *8(%r12)", 2, mem(12, -1, 1, 8, 8), 5},
		{"41 8b 45 00", "mov 0(%r13),%eax", 0, mem(13, -1, 1, 0, 4), 4},
		{"4a 8b 04 e3", "mov (%rbx,%r12,8),%rax", 0, mem(3, 12, 8, 0, 8), 4},
		{"83 7d fc 05", "cmpl $5,-4(%rbp)", 7, mem(5, -1, 1, -4, 4), 3},
		{"0f b6 c0", "movzbl %al,%eax", 0, reg(0, 1), 3},
		{"0f b7 47 02", "movzwl 2(%rdi),%eax", 0, mem(7, -1, 1, 2, 2), 4},
		{"48 8d 44 24 f8", "lea -8(%rsp),%rax", 0, mem(4, -1, 1, -8, 8), 5},
		{"f7 84 24 00 01 00 00 05 00 00 00", "testl $5,0x100(%rsp)", 0, mem(4, -1, 1, 0x100, 4), 7},
		{"c4 62 e3 f7 04 d7", "shrx %rbx,(%rdi,%rdx,8),%r8", 8, mem(7, 2, 8, 0, 8), 6},
		{"c5 f9 6f 47 10", "vmovdqa 0x10(%rdi),%xmm0", 0, mem(7, -1, 1, 0x10, 0), 5},
		{"f2 0f 10 07", "movsd (%rdi),%xmm0", 0, mem(7, -1, 1, 0, 0), 4},
		{"dd 07", "fldl (%rdi)", 0, mem(7, -1, 1, 0, 0), 2},
		{"0f ae 07", "fxsave (%rdi)", 0, mem(7, -1, 1, 0, 0), 3},
		{"48 0f ae 27", "xsave64 (%rdi)", 4, mem(7, -1, 1, 0, 0), 4},
		{"0f ae 5f 04", "stmxcsr 4(%rdi)", 3, mem(7, -1, 1, 4, 4), 4},
		{"0f c7 67 08", "xsavec 8(%rdi)", 4, mem(7, -1, 1, 8, 0), 4},
		{"0f 20 04", "mov %cr0,%rsp", 0, reg(4, 4), 3},
	} {
		code := bytesOf(t, test.code)
		in, ok := Decode(code)
		if !ok {
			t.Fatalf("%s: not decoded", test.text)
		}
		number, rm, imm := in.Operands(code, next)
		if diff := cmp.Diff(test.rm, rm); number != test.reg || imm != test.imm || diff != "" {
			t.Errorf("%s: reg %d (want %d), immediate at %d (want %d), r/m -want +got\n%s",
				test.text, number, test.reg, imm, test.imm, diff)
		}
		for n := range code {
			if number, rm, _ := in.Operands(code[:n], next); n < test.imm && in.HasModRM &&
				(number != -1 || rm != none) {
				t.Errorf("%s: operands %d, %+v of %d bytes", test.text, number, rm, n)
			}
		}
	}
}

func TestStackDelta(t *testing.T) {
	const unknown = -1 << 31
	for _, test := range []struct {
		code, text string
		want       int
	}{
		{"50", "push %rax", -8},
		{"54", "push %rsp", -8},
		{"41 57", "push %r15", -8},
		{"66 50", "push %ax", -2},
		{"66 48 50", "data16 rex.W push %rax", -8},
		{"68 01 02 03 04", "push $x", -8},
		{"6a 01", "push $1", -8},
		{"ff 35 01 02 03 04", "push x(%rip)", -8},
		{"9c", "pushf", -8},
		{"0f a0", "push %fs", -8},
		{"5d", "pop %rbp", 8},
		{"41 5c", "pop %r12", 8},
		{"5c", "pop %rsp", unknown},
		{"8f 04 24", "pop (%rsp)", 8},
		{"8f c0", "pop %rax", 8},
		{"8f c4", "pop %rsp", unknown},
		{"41 8f c4", "pop %r12", 8},
		{"9d", "popf", 8},
		{"c3", "ret", 8},
		{"c2 10 00", "ret $16", 24},
		{"cb", "lret", 8},
		{"e8 00 00 00 00", "call", 0},
		{"ff d0", "call *%rax", 0},
		{"48 83 ec 08", "sub $8,%rsp", -8},
		{"48 83 c4 80", "add $-128,%rsp", -128},
		{"48 81 ec 00 10 00 00", "sub $4096,%rsp", -4096},
		{"48 81 c4 00 10 00 00", "add $4096,%rsp", 4096},
		{"49 83 ec 08", "sub $8,%r12", 0},
		{"83 ec 08", "sub $8,%esp", unknown},
		{"66 83 ec 08", "sub $8,%sp", unknown},
		{"48 83 e4 f0", "and $-16,%rsp", unknown},
		{"48 83 fc 08", "cmp $8,%rsp", 0},
		{"48 83 2c 24 08", "subq $8,(%rsp)", 0},
		{"48 29 c4", "sub %rax,%rsp", unknown},
		{"48 2b e0", "sub %rax,%rsp", unknown},
		{"48 39 c4", "cmp %rax,%rsp", 0},
		{"48 85 e4", "test %rsp,%rsp", 0},
		{"48 89 e5", "mov %rsp,%rbp", 0},
		{"48 89 ec", "mov %rbp,%rsp", unknown},
		{"48 8b e5", "mov %rbp,%rsp", unknown},
		{"48 8b 27", "mov (%rdi),%rsp", unknown},
		{"4c 89 27", "mov %r12,(%rdi)", 0},
		{"48 8d 64 24 f8", "lea -8(%rsp),%rsp", -8},
		{"48 8d a4 24 00 01 00 00", "lea 256(%rsp),%rsp", 256},
		{"48 8d 65 f0", "lea -16(%rbp),%rsp", unknown},
		{"48 8d 24 04", "lea (%rsp,%rax,1),%rsp", unknown},
		{"8d 64 24 f8", "lea -8(%rsp),%esp", unknown},
		{"67 48 8d 64 24 f8", "lea -8(%esp),%rsp", unknown},
		{"48 8d 44 24 f8", "lea -8(%rsp),%rax", 0},
		{"48 ff c4", "inc %rsp", 1},
		{"48 ff cc", "dec %rsp", -1},
		{"48 f7 dc", "neg %rsp", unknown},
		{"c9", "leave", unknown},
		{"c8 10 00 00", "enter $16,$0", unknown},
		{"cf", "iret", unknown},
		{"48 94", "xchg %rax,%rsp", unknown},
		{"49 94", "xchg %rax,%r12", 0},
		{"48 87 e0", "xchg %rsp,%rax", unknown},
		{"48 87 27", "xchg %rsp,(%rdi)", unknown},
		{"48 0f 44 e0", "cmove %rax,%rsp", unknown},
		{"48 0f cc", "bswap %rsp", unknown},
		{"48 0f af e0", "imul %rax,%rsp", unknown},
		{"48 6b e0 08", "imul $8,%rax,%rsp", unknown},
		{"bc 01 02 03 04", "mov $x,%esp", unknown},
		{"48 c7 c4 01 02 03 04", "mov $x,%rsp", unknown},
		{"b4 01", "mov $1,%ah", 0},
		{"40 b4 01", "mov $1,%spl", unknown},
		{"88 c4", "mov %al,%ah", 0},
		{"40 88 c4", "mov %al,%spl", unknown},
		{"0f b6 e0", "movzbl %al,%esp", unknown},
		{"66 48 0f 7e c4", "movq %xmm0,%rsp", unknown},
		{"f3 0f 7e e0", "movq %xmm0,%xmm4", 0},
		{"f3 48 0f 2c e0", "cvttss2si %xmm0,%rsp", unknown},
		{"0f 58 e4", "addps %xmm4,%xmm4", 0},
		{"c4 e2 d8 f3 c8", "blsr %rax,%rsp", unknown},
		{"c5 f8 58 e4", "vaddps %xmm4,%xmm0,%xmm4", 0},
		{"c4 e1 f9 7e c4", "vmovq %xmm0,%rsp", unknown},
		{"0f 05", "syscall", 0},
		{"90", "nop", 0},
	} {
		code := bytesOf(t, test.code)
		in, ok := Decode(code)
		if !ok || int(in.Len) != len(code) {
			t.Fatalf("%s: % x: decoded %d bytes, ok %v", test.text, code, in.Len, ok)
		}
		delta, ok := in.StackDelta(code)
		if !ok {
			delta = unknown
		}
		if delta != test.want {
			t.Errorf("%s: % x: rsp%+d, want %+d", test.text, code, delta, test.want)
		}
		if _, ok := in.StackDelta(code[:len(code)-1]); ok {
			t.Errorf("%s: % x: truncated, but not refused", test.text, code)
		}
	}
}

func TestWrites(t *testing.T) {
	for _, test := range []struct {
		code, text string
		want       []uint8
	}{
		{"89 c8", "mov %ecx,%eax", []uint8{0}},
		{"8b c8", "mov %eax,%ecx", []uint8{1}},
		{"89 07", "mov %eax,(%rdi)", nil},
		{"4d 89 c7", "mov %r8,%r15", []uint8{15}},
		{"41 5c", "pop %r12", []uint8{12}},
		{"54", "push %rsp", nil},
		{"48 83 fb 05", "cmp $5,%rbx", nil},
		{"48 83 c3 05", "add $5,%rbx", []uint8{3}},
		{"48 87 da", "xchg %rbx,%rdx", []uint8{2, 3}},
		{"48 91", "xchg %rax,%rcx", []uint8{1}}, // rax not by name
		{"49 0f c8", "bswap %r8", []uint8{8}},
		{"88 c4", "mov %al,%ah", nil}, // of which it says nothing
		{"40 88 c4", "mov %al,%spl", []uint8{4}},
		{"f7 e3", "mul %ebx", nil}, // rax and rdx by its nature
		{"0f af fe", "imul %esi,%edi", []uint8{7}},
		{"0f ba e3 05", "bt $5,%ebx", nil},
		{"0f ba eb 05", "bts $5,%ebx", []uint8{3}},
		{"0f 38 f0 1f", "movbe (%rdi),%ebx", []uint8{3}},
		{"c4 e2 e0 f3 cf", "blsr %rdi,%rbx", []uint8{3}},
		{"c4 62 e3 f6 c2", "mulx %rdx,%rbx,%r8", []uint8{3, 8}},
		{"c5 f8 58 e4", "vaddps %xmm4,%xmm0,%xmm4", nil},
	} {
		code := bytesOf(t, test.code)
		in, ok := Decode(code)
		if !ok || int(in.Len) != len(code) {
			t.Fatalf("%s: decoded %d bytes, ok %v", test.text, in.Len, ok)
		}
		var got []uint8
		for number := range uint8(16) {
			if in.Writes(code, number) {
				got = append(got, number)
			}
			if !in.Writes(code[:len(code)-1], number) {
				t.Errorf("%s: register %d is not taken to be written by truncated code", test.text,
					number)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}

func ExampleInst_Operands() {
	code := []byte{0x48, 0x63, 0x04, 0x87} // movslq (%rdi,%rax,4),%rax
	in, _ := Decode(code)
	reg, rm, _ := in.Operands(code, 0x1004)
	fmt.Printf("r%d <- %d bytes at r%d + r%d*%d\n", reg, rm.Size, rm.Base, rm.Index, rm.Scale)
	// Output: r0 <- 4 bytes at r7 + r0*4
}

func ExampleInst_StackDelta() {
	for _, code := range [][]byte{{0x55}, {0x48, 0x83, 0xc4, 0x28}, {0x48, 0x89, 0xec}} {
		// push %rbp; add $40,%rsp; mov %rbp,%rsp
		in, _ := Decode(code)
		fmt.Println(in.StackDelta(code))
	}
	// Output:
	// -8 true
	// 40 true
	// 0 false
}

func ExampleInst_Writes() {
	code := []byte{0x4c, 0x89, 0xc3} // mov %r8,%rbx
	in, _ := Decode(code)
	fmt.Println(in.Writes(code, 3), in.Writes(code, 8))
	// Output: true false
}

func ExampleInst_WritesRSP() {
	for _, code := range [][]byte{{0x55}, {0x5c}, {0x48, 0x89, 0xec}} {
		// push %rbp; pop %rsp; mov %rbp,%rsp
		in, _ := Decode(code)
		fmt.Println(in.WritesRSP(code))
	}
	// Output:
	// false
	// true
	// true
}

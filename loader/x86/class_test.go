package x86

import (
	"fmt"
	"testing"
)

func TestClass(t *testing.T) {
	for _, test := range []struct {
		code, text string
		want       Class
	}{
		{"90", "nop", Emulated},
		{"50", "push %rax", Emulated},
		{"54", "push %rsp", Emulated},
		{"41 57", "push %r15", Emulated},
		{"e8 01 02 03 04", "call", Emulated},
		{"f2 e8 01 02 03 04", "bnd call", Emulated},
		{"67 e8 01 02 03 04", "addr32 call, which linkers make of an indirect one", Emulated},
		{"e9 01 02 03 04", "jmp", Emulated},
		{"eb 01", "jmp", Emulated},
		{"f2 eb 01", "bnd jmp", Emulated},
		{"74 01", "je", Emulated},
		{"0f 8f 01 02 03 04", "jg", Emulated},
		{"f2 0f 8f 01 02 03 04", "bnd jg", Emulated},

		{"f3 0f 1e fa", "endbr64", Stepped},
		{"0f 1f 00", "3-byte nop", Stepped},
		{"0f 1f 40 00", "4-byte nop", Stepped},
		{"66 0f 1f 44 00 00", "6-byte nop", Stepped},
		{"66 0f 1f 84 00 00 00 00 00", "9-byte nop", Stepped},
		{"5d", "pop %rbp", Stepped},
		{"41 5c", "pop %r12", Stepped},
		{"c3", "ret", Stepped},
		{"c9", "leave", Stepped},
		{"48 89 e5", "mov %rsp,%rbp", Stepped},
		{"66 89 07", "mov %ax,(%rdi)", Stepped},
		{"48 8b 05 01 02 03 04", "mov x(%rip),%rax", Stepped},
		{"48 8d 3d 01 02 03 04", "lea x(%rip),%rdi", Stepped},
		{"48 83 ec 08", "sub $8,%rsp", Stepped},
		{"85 c0", "test %eax,%eax", Stepped},
		{"3c 05", "cmp $5,%al", Stepped},
		{"31 c0", "xor %eax,%eax", Stepped},
		{"0f b6 c0", "movzbl %al,%eax", Stepped},
		{"0f 94 c0", "sete %al", Stepped},
		{"48 0f 44 c1", "cmove %rcx,%rax", Stepped},
		{"ff d0", "call *%rax", Stepped},
		{"ff 25 01 02 03 04", "jmp *x(%rip)", Stepped},
		{"b8 01 02 03 04", "mov $x,%eax", Stepped},
		{"c7 00 01 02 03 04", "movl $x,(%rax)", Stepped},

		{"0f 1f 44 00 00", "5-byte nop: a newer kernel makes it a call that clobbers the red zone",
			Never},
		{"c5 f8 77", "vzeroupper", Never},
		{"c5 f9 70 c0 01", "vpshufd: its opcode is that of a conditional jump", Never},
		{"c5 fa e9 c0", "vex, opcode of jmp", Never},
		{"c5 fb c2 c1 00", "vcmpsd, opcode of ret", Never},
		{"62 f1 fe 48 6f 07", "evex", Never},
		{"8f e9 78 81 c1", "xop", Never},
		{"66 90", "data16 nop", Never},
		{"f3 90", "pause", Never},
		{"49 90", "xchg %rax,%r8", Never},
		{"41 90", "xchg %eax,%r8d", Never},
		{"66 50", "push %ax", Never},
		{"48 50", "rex.W push %rax", Never},
		{"f2 50", "repnz push %rax", Never},
		{"48 e8 01 02 03 04", "rex.W call", Never},
		{"66 66 48 e8 01 02 03 04", "the call of __tls_get_addr", Never},
		{"f3 e8 01 02 03 04", "repz call", Never},
		{"67 f2 e8 01 02 03 04", "addr32 bnd call", Never},
		{"67 67 e8 01 02 03 04", "addr32 twice", Never},
		{"2e e8 01 02 03 04", "cs call", Never},
		{"67 e9 01 02 03 04", "addr32 jmp", Never},
		{"67 eb 01", "addr32 jmp", Never},
		{"67 50", "addr32 push %rax", Never},
		{"f2 f2 e8 01 02 03 04", "bnd twice", Never},
		{"2e 74 01", "je,pn", Never},
		{"3e ff e0", "notrack jmp *%rax", Never},
		{"f2 ff e0", "bnd jmp *%rax", Never},
		{"f3 c3", "repz ret", Never},
		{"66 c3", "data16 ret", Never},
		{"f0 01 07", "lock add %eax,(%rdi)", Never},
		{"64 48 8b 04 25 28 00 00 00", "mov %fs:0x28,%rax", Never},
		{"67 8b 07", "mov (%edi),%eax", Never},
		{"0f 05", "syscall", Never},
		{"cd 80", "int $0x80", Never},
		{"9c", "pushf", Never},
		{"9d", "popf", Never},
		{"cc", "int3", Never},
		{"f4", "hlt", Never},
		{"cf", "iret", Never},
		{"cb", "far ret", Never},
		{"ff 1f", "far call", Never},
		{"c7 f8 01 02 03 04", "xbegin", Never},
		{"a4", "movsb", Never},
		{"f3 a4", "rep movsb", Never},
		{"8e d0", "mov %eax,%ss", Never},
		{"e2 01", "loop", Never},
		{"e3 01", "jrcxz", Never},
		{"87 07", "xchg %eax,(%rdi)", Never},
		{"0f 0b", "ud2", Never},
		{"0f a2", "cpuid", Never},
		{"0f 31", "rdtsc", Never},
		{"d8 c0", "fadd", Never},
		{"0f 58 c0", "addps", Never},
		{"0f 0d 08", "prefetchw (%rax)", Never},
	} {
		code := bytesOf(t, test.code)
		in, ok := Decode(code)
		if !ok || int(in.Len) != len(code) {
			t.Errorf("%s: % x: decoded %d bytes, ok %v", test.text, code, in.Len, ok)
		}
		if got := in.Class(code); got != test.want {
			t.Errorf("%s: % x: class %d, want %d", test.text, code, got, test.want)
		}
		if in.Class(code[:len(code)-1]) != Never {
			t.Errorf("%s: % x: truncated, but not refused", test.text, code)
		}
	}
}

// TestEmulatedIsExact crosses every opcode with every prefix: what is emulated must be on a list of
// byte strings.
func TestEmulatedIsExact(t *testing.T) {
	for _, prefix := range []string{"", "\x66", "\x67", "\xf0", "\xf2", "\xf3", "\x2e", "\x3e",
		"\x64", "\x40", "\x41", "\x44", "\x48", "\x49", "\xf2\x41", "\x41\xf2", "\xf2\xf2",
		"\x66\x41"} {
		for first := range 256 {
			for _, second := range []byte{0x00, 0x80, 0x8f, 0x90, 0xc0, 0xe8} {
				code := append([]byte(prefix), byte(first), second, 0, 0, 0, 0, 0, 0, 0, 0, 0)
				in, ok := Decode(code)
				if got := ok && in.Class(code) == Emulated; got != isEmulated(prefix, byte(first),
					second) {
					t.Errorf("% x: emulated %v", code[:4], got)
				}
			}
		}
	}
}

func isEmulated(prefix string, first, second byte) bool {
	branch := first >= 0x70 && first <= 0x7f || first == 0xe8 || first == 0xe9 || first == 0xeb ||
		first == 0x0f && second&0xf0 == 0x80
	push := first >= 0x50 && first <= 0x57
	switch prefix {
	case "":
		return branch || push || first == 0x90 || (first == 0xf2 || first == 0x67) &&
			second == 0xe8 || first == 0x41 && second&0xf8 == 0x50
	case "\xf2":
		return branch
	case "\x41":
		return push
	case "\x67":
		return first == 0xe8
	}
	return false
}

func ExampleInst_Class() {
	for _, code := range [][]byte{{0x55}, {0xc3}, {0x0f, 0x05}} {
		in, _ := Decode(code)
		fmt.Println(in.Class(code) == Emulated, in.Class(code) == Stepped)
	}
	// Output:
	// true false
	// false true
	// false false
}

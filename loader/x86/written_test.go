package x86

import (
	"encoding/hex"
	"testing"
)

func TestWrittenRegisters(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		want      []int8
	}{
		{"mov %rdi,%rax", "4889f8", []int8{RAX}},
		{"mov %rax,(%rdi)", "488907", nil},
		{"mov (%rdi),%r12", "4c8b27", []int8{R12}},
		{"movb $1,(%rax)", "c60001", nil},
		{"mov $1,%ah", "b401", []int8{RAX}},
		{"mov %al,%bh", "88c7", []int8{RBX}},
		{"lea 8(%rsp),%r15", "4c8d7c2408", []int8{R15}},
		{"movzbl %al,%r9d", "440fb6c8", []int8{R9}},
		{"movslq %eax,%rdx", "4863d0", []int8{RDX}},
		{"add %r8,%rcx", "4c01c1", []int8{RCX}},
		{"add (%rsi),%r8", "4c0306", []int8{R8}},
		{"cmp %rax,%rbx", "4839c3", nil},
		{"cmp $5,%rbx", "4883fb05", nil},
		{"and $5,%ebx", "83e305", []int8{RBX}},
		{"test %eax,%eax", "85c0", nil},
		{"test $1,%dl", "f6c201", nil},
		{"push %rbx", "53", nil},
		{"pop %r12", "415c", []int8{R12}},
		{"xchg %rbx,%rdx", "4887da", []int8{RBX, RDX}},
		{"xchg %rax,%r8", "4990", []int8{RAX, R8}},
		{"nop", "90", nil},
		{"cltq", "4898", []int8{RAX}},
		{"cqto", "4899", []int8{RDX}},
		{"imul %rbx", "48f7eb", []int8{RAX, RDX}},
		{"neg %rbx", "48f7db", []int8{RBX}},
		{"imul $3,%rsi,%rdi", "486bfe03", []int8{RDI}},
		{"imul %rsi,%rdi", "480faffe", []int8{RDI}},
		{"shl $3,%rbx", "48c1e303", []int8{RBX}},
		{"rep stosq", "f348ab", []int8{RCX, RDI}},
		{"setne %cl", "0f95c1", []int8{RCX}},
		{"cmove %rbx,%rdx", "480f44d3", []int8{RDX}},
		{"bswap %r8", "490fc8", []int8{R8}},
		{"cmpxchg %rbx,(%rdi)", "480fb11f", []int8{RAX}},
		{"xadd %ch,%dl", "0fc0ea", []int8{RCX, RDX}},
		{"bsr %rsi,%rdi", "480fbdfe", []int8{RDI}},
		{"leave", "c9", []int8{RBP}},
		{"cpuid", "0fa2", []int8{RAX, RCX, RDX, RBX}},
		{"endbr64", "f30f1efa", nil},
		{"nopw 0(%rax,%rax,1)", "660f1f440000", nil},
		{"movq %xmm0,%rbx", "66480f7ec3", []int8{RBX}},
		{"movaps %xmm0,(%rax)", "0f2900", nil},
		{"pmovmskb %xmm1,%edi", "660fd7f9", []int8{RDI}},
		{"cvttsd2si %xmm0,%rbx", "f2480f2cd8", []int8{RBX}},
		{"vmovmskps %ymm0,%edx", "c5fc50d0", []int8{RDX}},
		{"vpxor %xmm0,%xmm0,%xmm0", "c5f9efc0", nil},
		{"vzeroupper", "c5f877", nil},
		{"vpaddd %zmm1,%zmm2,%zmm3", "62f16d48fed9", nil},
		{"vmovd %xmm16,%ebx", "62e17d087ec3", []int8{RBX}},
		{"vpermd %zmm1,%zmm2,%zmm3", "62f26d4836d9", nil},
		{"vpternlogd $1,%zmm1,%zmm2,%zmm3", "62f36d4825d901", nil},
		{"mulx %rdx,%rbx,%r8", "c462e3f6c2", []int8{RBX, R8}},
		{"andn %rdi,%rbx,%r9", "c462e0f2cf", []int8{R9}},
		{"blsr %rdi,%rbx", "c4e2e0f3cf", []int8{RBX}},
		{"shlx %rax,(%rdi),%rbx", "c4e2f9f71f", []int8{RBX}},
		{"rorx $3,%rdi,%r9", "c463fbf0cf03", []int8{R9}},
		{"crc32b %dl,%ebx", "f20f38f0da", []int8{RBX}},
		{"movbe (%rdi),%ebx", "0f38f01f", []int8{RBX}},
		{"movbe %ebx,(%rdi)", "0f38f11f", nil},
		{"vpextrd $3,%xmm0,%eax", "c4e37916c003", []int8{RAX}},
		{"vpextrd $3,%xmm0,(%rdi)", "c4e379160703", nil},
		{"vpbroadcastq %xmm1,%ymm5", "c4e27d59e9", nil},
		{"pcmpistri $8,%xmm1,%xmm5", "660f3a63e908", []int8{RCX}},
	} {
		b, err := hex.DecodeString(test.code)
		if err != nil {
			t.Fatal(err)
		}
		in, ok := Decode(b)
		if !ok || int(in.Len) != len(b) {
			t.Errorf("%s: decoded to %d bytes of %d", test.asm, in.Len, len(b))
			continue
		}
		e := in.Effects(b, 0)
		want := SetOf(test.want...)
		if got := e.Written(); got != want {
			t.Errorf("%s writes registers %016b, want %016b", test.asm, got, want)
		}
	}
}

func TestWritesMemory(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		want      bool
	}{
		{"mov %rax,(%rdi)", "488907", true}, {"mov (%rdi),%rax", "488b07", false},
		{"add %eax,(%rdi)", "0107", true},
		{"add (%rdi),%eax", "0307", false}, {"cmpl $1,(%rdi)", "833f01", false}, {"addl $1,(%rdi)",
			"830701", true},
		{"testb $1,(%rdi)", "f60701", false}, {"negl (%rdi)", "f71f", true}, {"incl (%rdi)", "ff07",
			true},
		{"push (%rdi)", "ff37", false}, {"movzbl (%rdi),%eax", "0fb607", false},
		{"movups %xmm0,(%rdi)", "0f1107", true},
		{"movups (%rdi),%xmm0", "0f1007", false}, {"movq %xmm0,(%rdi)", "660fd607", true},
		{"sete (%rdi)", "0f9407", true},
		{"cmove (%rdi),%eax", "0f4407", false}, {"lea (%rdi),%rax", "488d07", false},
	} {
		b, err := hex.DecodeString(test.code)
		if err != nil {
			t.Fatal(err)
		}
		in, _ := Decode(b)
		e := in.Effects(b, 0)
		if _, _, got := e.Stores(); got != test.want {
			t.Errorf("%s writes memory: %v, want %v", test.asm, got, test.want)
		}
	}
}

package recovery_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFramesAreHidden: a routine that lets its frame's address out asks nothing that is known.
func TestFramesAreHidden(t *testing.T) {
	inFrame(t, []line{
		{"xor %eax, %eax", true}, {"mov %rax, -16(%rbp)", true}, {"sub $8, %rsp\n add $8, %rsp",
			true}, {"lea 8(%rdi), %rax", true}, {"nopl (%rbp)", true}, {"call f0", true},
		{"lea -8(%rbp), %rax", false}, {"lea (%rdi,%rbp), %rax", false}, {"mov %rsp, %rax", false},
		{"mov %rbp, %rax", false}, {"mov %rbp, (%rdi)", false}, {"push %rbp\n pop %rax", false},
		{"push %rsp\n pop %rax", false}, {"add %rbp, %rax", false}, {"add %rsp, %rax", false},
		{"xchg %rax, %rbp\n xchg %rax, %rbp", false}, {"cmp %rsp, %rax", false},
		{"andn %rax, %rcx, %rdx", true}, {"andn %rax, %rbp, %rcx", false}, {"bzhi %rbp, %rax, %rcx",
			false}, {"shlx %rsp, %rax, %rcx", false},
	}, func(asked bool, _ bool) bool { return asked })
}

// TestBlocksKeepPlaces: a block leaves the four bytes at -8(%rbp) alone.
func TestBlocksKeepPlaces(t *testing.T) {
	inFrame(t, []line{
		{"xor %eax, %eax", true}, {"mov %eax, -4(%rbp)", true}, {"mov %rax, -16(%rbp)", true},
		{"movups %xmm0, -24(%rbp)", true}, {"mov -8(%rbp), %eax", true}, {"cmpl $1, (%rdi)", true},
		{"mov %eax, -8(%rbp)", false}, {"mov %al, -5(%rbp)", false}, {"mov %rax, -12(%rbp)", false},
		{"mov %rax, -15(%rbp)", false}, {"movups %xmm0, -23(%rbp)", false},
		{"mov %eax, (%rdi)", false}, {"mov %eax, (%rsp)", false}, {"mov %eax, -32(%rbp,%rcx,4)",
			false}, {"rep stosb", false}, {"push %rax\n pop %rax", false}, {"call f0", false},
		{"bts %eax, -48(%rbp)", false}, {"maskmovdqu %xmm0, %xmm1", false}, {"incl -8(%rbp)",
			false}, {"sub $8, %rsp\n add $8, %rsp", false}, {"syscall", false},
		{"mov %eax, %fs:-16(%rbp)", false}, {"mov %eax, -16(%ebp)", false},
		{"mov %fs:-16(%rbp), %eax", true},
		{"sete -8(%rbp)", false}, {"sete -9(%rbp)", true}, {"xchg %eax, -8(%rbp)", false},
		{"lock xadd %eax, -8(%rbp)", false}, {"cmpxchg %ecx, -8(%rbp)", false},
		{"cmpxchg8b -12(%rbp)", false}, {"btsl $1, -8(%rbp)", false}, {"shld $1, %eax, -8(%rbp)",
			false}, {"fstpt -16(%rbp)", false},
		{"fnsave -112(%rbp)", false}, {"movlps %xmm0, -12(%rbp)", false}, {"movd %xmm0, -12(%rbp)",
			true}, {"movd %xmm0, -8(%rbp)", false}, {"movss %xmm0, -8(%rbp)", false},
		{"vmovups %ymm0, -32(%rbp)", false}, {"vmovd %xmm0, -8(%rbp)", false},
		{"movnti %eax, -8(%rbp)", false}, {"movbe %eax, -8(%rbp)", false}, {"notl -8(%rbp)", false},
	}, func(_ bool, kept bool) bool { return kept })
}

const rdi = 7 // by hardware number; what the first jump asks for, which is not looked at

// A line is what a block does, and what is expected of it.
type line struct {
	code string
	want bool
}

// TestBlocksKeepRegisters: a block leaves ecx alone. One that writes its high byte asks nothing.
func TestBlocksKeepRegisters(t *testing.T) {
	between(t, [2]string{"cmpl $3, %ecx", "testb $4, %cl"}, false, []line{
		{"xor %eax, %eax", true}, {"mov %ecx, %eax", true}, {"mov %rcx, (%rdi)", true},
		{"lea (%rcx,%rcx), %rax", true}, {"push %rax\n pop %rax", true}, {"movd %ecx, %xmm0", true},
		{"cmp %eax, %ecx", true}, {"bts %eax, -48(%rbp)", true}, {"mov $1, %ah", true},
		{"xchg %eax, %edx", true}, {"cqo", true}, {"mov %r9d, %eax", true},
		{"mov %eax, %ecx", false}, {"mov $0, %cl", false}, {"mov $0, %ch", false}, {"inc %ecx",
			false}, {"xchg %eax, %ecx", false}, {"xadd %ecx, %eax", false}, {"cmpxchg %eax, %ecx",
			false},
		{"pop %rcx\n push %rcx", false}, {"rep stosb", false}, {"call f0", false}, {"call *%rax",
			false}, {"syscall", false}, {"cpuid", false}, {"rdtscp", false}, {"movd %xmm0, %ecx",
			false},
		{"shl $1, %ecx", false}, {"sete %cl", false}, {"cmove %eax, %ecx", false}, {"bswap %ecx",
			false}, {"andn %rax, %rax, %rcx", false}, {"mulx %rax, %rcx, %rdx", false},
		{"popcnt %eax, %ecx", false},
	}, func(asked, kept bool) bool { return asked && kept })
}

// TestConditionsThatAreNotKnown: a jump that goes by more than the low half of one register asks
// for nothing.
func TestConditionsThatAreNotKnown(t *testing.T) {
	for _, question := range []string{
		"testb $4, %ch", "testb $4, %bh", "cmp $4, %rcx", "test %rcx, %rcx", "cmp %edx, %ecx",
		"test %edx, %ecx", "inc %ecx\n cmp $3, %ecx", "mov %dl, %cl\n cmp $3, %ecx",
		"cmp $3, %ecx\n shr $1, %edx",
		"cmp $3, %ecx\n inc %edx", "lea 1(%rcx), %ecx\n cmp $3, %ecx", "cmp $3, %ecx\n popf",
		"adc $0, %ecx\n test %ecx, %ecx", "xadd %edx, %ecx\n cmp $3, %ecx", "cmp $3, %esp",
		"bswap %ecx\n cmp $3, %ecx",
		"shr %cl, %edx\n test %edx, %edx", "imul $3, %ecx\n cmp $3, %ecx",
		"cmpxchg %edx, %ecx\n cmp $3, %ecx", "cmove %edx, %ecx\n cmp $3, %ecx", "neg %ecx",
		"bt $3, %ecx", "mulx %rax, %rcx, %rdx\n cmp $3, %ecx",
	} {
		between(t, [2]string{"cmpl $3, %ecx", question}, false, []line{{"nop", false}},
			func(asked, _ bool) bool { return asked })
	}
}

// inFrame compares what is found of lines between two jumps that ask for a place in the frame.
func inFrame(t *testing.T, lines []line, found func(asked, kept bool) bool) {
	between(t, [2]string{"cmpl $3, -8(%rbp)", "testb $4, -8(%rbp)"}, true, lines, found)
}

// between makes a routine of each line, between two jumps that ask for a place, in memory or not,
// and compares what is found of it: whether the jumps ask for it, and whether the block keeps it.
func between(t *testing.T, questions [2]string, inMemory bool, lines []line,
	found func(asked, kept bool) bool) {
	var source strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&source, ".type f%d, @function\nf%d: .cfi_startproc\n push %%rbp\n "+
			".cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n mov %%rsp, %%rbp\n "+
			".cfi_def_cfa_register 6\n"+
			" sub $32, %%rsp\n test %%edi, %%edi\n je 2f\n %s\n je 2f\n %s\n jmp 1f\n1: %s\n jne "+
			"2f\n nop\n2: leave\n .cfi_def_cfa 7, 8\n ret\n .cfi_endproc\n .size f%d, .-f%d\n",
			i, i, questions[0], l.code, questions[1], i, i)
	}
	p := recoverFile(t, compile(t, fmt.Sprintf("asm(%q); int main(void) { return 0; }", &source)))
	for i, l := range lines {
		r := routine(t, p, fmt.Sprintf("f%d", i))
		conditions := r.Conditions()
		asked, kept := 0, true
		for b, c := range conditions {
			if c != nil && c.Place.Mem == inMemory && (inMemory || c.Place.Reg != rdi) {
				asked++
				kept = kept && r.Keeps(b+1, c.Place)
			}
		}
		if got := found(asked == 2, kept); got != l.want {
			t.Errorf("%q: got %v", l.code, got)
		}
	}
}

package cfg_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFramesAreHidden: a routine that lets its frame's address out asks nothing that is known.
func TestFramesAreHidden(t *testing.T) {
	inFrame(t, []line{
		{"xor %eax, %eax", true}, {"mov %rax, -16(%rbp)", true}, {"sub $8, %rsp\n add $8, %rsp", true}, {"lea 8(%rdi), %rax", true}, {"nopl (%rbp)", true}, {"call f0", true},
		{"lea -8(%rbp), %rax", false}, {"lea (%rdi,%rbp), %rax", false}, {"mov %rsp, %rax", false}, {"mov %rbp, %rax", false}, {"mov %rbp, (%rdi)", false}, {"push %rbp\n pop %rax", false},
		{"push %rsp\n pop %rax", false}, {"add %rbp, %rax", false}, {"add %rsp, %rax", false}, {"xchg %rax, %rbp\n xchg %rax, %rbp", false}, {"cmp %rsp, %rax", false},
		{"andn %rax, %rcx, %rdx", true}, {"andn %rax, %rbp, %rcx", false}, {"bzhi %rbp, %rax, %rcx", false}, {"shlx %rsp, %rax, %rcx", false},
	}, func(asked bool, _ bool) bool { return asked })
}

// TestBlocksKeepPlaces: a block leaves the four bytes at -8(%rbp) alone.
func TestBlocksKeepPlaces(t *testing.T) {
	inFrame(t, []line{
		{"xor %eax, %eax", true}, {"mov %eax, -4(%rbp)", true}, {"mov %rax, -16(%rbp)", true}, {"movups %xmm0, -24(%rbp)", true}, {"mov -8(%rbp), %eax", true}, {"cmpl $1, (%rdi)", true},
		{"mov %eax, -8(%rbp)", false}, {"mov %al, -5(%rbp)", false}, {"mov %rax, -12(%rbp)", false}, {"mov %rax, -15(%rbp)", false}, {"movups %xmm0, -23(%rbp)", false},
		{"mov %eax, (%rdi)", false}, {"mov %eax, (%rsp)", false}, {"mov %eax, -32(%rbp,%rcx,4)", false}, {"rep stosb", false}, {"push %rax\n pop %rax", false}, {"call f0", false},
		{"bts %eax, -48(%rbp)", false}, {"maskmovdqu %xmm0, %xmm1", false}, {"incl -8(%rbp)", false}, {"sub $8, %rsp\n add $8, %rsp", false}, {"syscall", false},
		{"mov %eax, %fs:-16(%rbp)", false}, {"mov %eax, -16(%ebp)", false}, {"mov %fs:-16(%rbp), %eax", true},
		{"sete -8(%rbp)", false}, {"sete -9(%rbp)", true}, {"xchg %eax, -8(%rbp)", false}, {"lock xadd %eax, -8(%rbp)", false}, {"cmpxchg %ecx, -8(%rbp)", false},
		{"cmpxchg8b -12(%rbp)", false}, {"btsl $1, -8(%rbp)", false}, {"shld $1, %eax, -8(%rbp)", false}, {"fstpt -16(%rbp)", false},
		{"fnsave -112(%rbp)", false}, {"movlps %xmm0, -12(%rbp)", false}, {"movd %xmm0, -12(%rbp)", true}, {"movd %xmm0, -8(%rbp)", false}, {"movss %xmm0, -8(%rbp)", false},
		{"vmovups %ymm0, -32(%rbp)", false}, {"vmovd %xmm0, -8(%rbp)", false}, {"movnti %eax, -8(%rbp)", false}, {"movbe %eax, -8(%rbp)", false}, {"notl -8(%rbp)", false},
	}, func(_ bool, kept bool) bool { return kept })
}

// A line is what a block does, and what is expected of it.
type line struct {
	code string
	want bool
}

// inFrame makes a routine of each line, between two jumps that ask for the place, and compares what
// is found of it: whether the jumps ask for it, and whether the block keeps it.
func inFrame(t *testing.T, lines []line, found func(asked, kept bool) bool) {
	var source strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&source, ".type f%d, @function\nf%d: .cfi_startproc\n push %%rbp\n .cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n mov %%rsp, %%rbp\n .cfi_def_cfa_register 6\n"+
			" sub $32, %%rsp\n test %%edi, %%edi\n je 2f\n cmpl $3, -8(%%rbp)\n je 2f\n %s\n jmp 1f\n1: testb $4, -8(%%rbp)\n jne 2f\n nop\n2: leave\n .cfi_def_cfa 7, 8\n ret\n .cfi_endproc\n .size f%d, .-f%d\n",
			i, i, l.code, i, i)
	}
	p := recoverFile(t, compile(t, fmt.Sprintf("asm(%q); int main(void) { return 0; }", &source)))
	for i, l := range lines {
		r := routine(t, p, fmt.Sprintf("f%d", i))
		conditions := r.Conditions()
		asked, kept := 0, true
		for b, c := range conditions {
			if c != nil {
				asked++
				kept = kept && r.Keeps(b+1, c.Place)
			}
		}
		if got := found(asked == 2, kept); got != l.want {
			t.Errorf("%q: got %v", l.code, got)
		}
	}
}

// A jump of f goes through a table that leads into the cold part of g, to which g itself jumps,
// too. The instruction TABLE loads what the table begins with, or what nothing is known of.
#include "beginend.h"

#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n" \
	".cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
__asm__(".section .text.unlikely,\"ax\"\n.type g.cold,@function\ng.cold:\n.cfi_startproc\n"
	".cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n"
	"1: call abort\n.cfi_endproc\n.size g.cold,.-g.cold\n.text\n"
	BEGIN(f) PUSH TABLE "\nmov (%rdx,%rdi,8),%rax\njmp *%rax\n4: mov $1,%eax\n" POP
	"5: mov $2,%eax\n" POP "6: mov $3,%eax\n" POP END(f)
	BEGIN(g) PUSH "test %edi,%edi\njz g.cold\nmov $4,%eax\n" POP END(g)
	".section .data.rel.ro,\"aw\"\n.p2align 3\nof_f: .quad 4b, 5b, 6b, 1b\n.text\n");
int f(long), g(long);
void *volatile table;
int main(int c, char **v) {
	return f(c) + g(c);
}

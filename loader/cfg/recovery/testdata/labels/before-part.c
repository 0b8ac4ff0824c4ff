// The table of labels of g follows that of f. The labels of g are in PART, the name of a part
// of a routine, which ends by the instruction ENDS.
#include "beginend.h"

#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n" \
	".cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define GO(table) "lea " #table "(%rip),%rdx\nmov (%rdx,%rdi,8),%rax\njmp *%rax\n"
__asm__(".section .text.unlikely,\"ax\"\n.type " PART ",@function\n" PART
	":\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n"
	"1: call abort\n"
	"2: call abort\n"
	"3: " ENDS "\n.cfi_endproc\n.size " PART ",.-" PART "\n.text\n"
	BEGIN(f) PUSH GO(of_f) "4: mov $1,%eax\n" POP "5: mov $2,%eax\n" POP "6: mov $3,%eax\n" POP
	END(f)
	BEGIN(g) PUSH GO(of_g) "g_back: mov $4,%eax\n" POP END(g)
	".section .data.rel.ro,\"aw\"\n.p2align 3\n"
	"of_f: .quad 4b, 5b, 6b\n"
	"of_g: .quad 2b, 1b, 3b\n.text\n");
int f(long), g(long);
int main(int c, char **v) {
	return f(c) + g(c);
}

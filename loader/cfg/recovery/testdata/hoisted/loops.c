// Loops around a switch of whose table a register has the address all the while, as far as can
// be seen but for behind a call: there it has something else, or, in two_tables, the address of
// another. In given it is an argument.

#define LOOP(name, first, base, before) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n" first base \
	"1: call note\ncmp $2,%eax\nja 8f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"3: call note\n" before "mov $1,%edi\ncall may_exit\n" \
	"4: call note\njmp 1b\n" \
	"5: mov $1,%edi\ncall may_exit\n" \
	"6: call note\ncall note\njmp 1b\n" \
	"8: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 4b-9b, 6b-9b, 0\n" \
	"10: .long 6b-10b, 6b-10b, 3b-10b\n.text\n");
#define TABLE "lea 9f(%rip),%rbx\n"
LOOP(plain, "", TABLE, "")
LOOP(number, "", TABLE, "movslq %eax,%rbx\n")
LOOP(pointer, "", TABLE, "mov (%rax),%rbx\n")
LOOP(begins, "test %rdi,%rdi\njz 5f\n", TABLE, "")
LOOP(no_table, "", TABLE, "lea note(%rip),%rbx\n")
LOOP(two_tables, "", TABLE, "lea 10f(%rip),%rbx\n")
LOOP(given, "", "mov %rdi,%rbx\n", "")

#include "callees.h"

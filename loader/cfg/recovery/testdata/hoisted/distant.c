// The addresses of the tables are sums, in blocks before those of the switches, of what a
// register holds and of numbers. Nothing bounds the index.

#define SWITCH(table, here, a, b) "movabs $" table "f@GOTOFF,%rbp\nadd %rbx,%rbp\n" \
	here ": call note\nmovzbl (%rsp),%eax\nmovslq (%rbp,%rax,4),%rax\nadd %rbp,%rax\njmp *%rax\n" \
	a ": call note\njmp " here "b\n" \
	b ": call note\n"
#define DISTANT(name, base) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n" base "jmp 1f\n" \
	"1: push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp,-24\ncall note\n" \
	SWITCH("20", "2", "3", "4") SWITCH("21", "5", "6", "7") \
	"pop %rbp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" \
	".cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n20: .long 3b-20b, 4b-20b, 2b-20b\n" \
	"21: .long 6b-21b, 7b-21b, 5b-21b, 0\n.text\n");
DISTANT(known, "lea _GLOBAL_OFFSET_TABLE_(%rip),%rbx\n")
DISTANT(given, "mov %rdi,%rbx\n")
DISTANT(itself, "lea 8(%rbx),%rbx\n")

#include "callees.h"

// The table has 5,000 entries, more than are read of one without a bound. BOUND is a text with
// the bound, or none.

__asm__(".globl long_table\n.type long_table,@function\n"
	"long_table: .cfi_startproc\nmov %edi,%eax\n" BOUND "lea 9f(%rip),%rcx\n"
	"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
	"1: nop\n"
	"2: ret\n"
	"3: mov $3,%eax\nret\n.cfi_endproc\n.size long_table,.-long_table\n"
	".section .rodata\n.p2align 2\n9: .rept 4999\n.long 1b-9b\n.endr\n.long 3b-9b, 0\n.text\n");

#include "callees.h"

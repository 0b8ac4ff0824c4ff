// Nothing bounds the index, and behind entries that lead nowhere another leads into the
// routine. HOLES are the entries before that one.

__asm__(".globl holes\n.type holes,@function\n"
	"holes: .cfi_startproc\nlea (%rdi,%rsi),%eax\nlea 9f(%rip),%rcx\n"
	"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
	"1: mov $1,%eax\nret\n"
	"2: mov $2,%eax\nret\n"
	"3: mov $3,%eax\nret\n"
	"10:\n.cfi_endproc\n.size holes,.-holes\n"
	".section .rodata\n.p2align 2\n9: .long " HOLES " 3b-9b\n.text\n");

#include "callees.h"

// A mask leaves out every other entry of the table: compilers fill such places with what they
// like.

#define EVEN(name, index) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name \
	": .cfi_startproc\nlea (%rdi,%rdi),%eax\n" index "lea 9f(%rip),%rcx\n" \
	"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n" \
	"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n4: mov $4,%eax\nret\n" \
	"5: nop\n6: dec %edi\njnz 5b\n7: ret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n" \
	"9: .long 1b-9b, 5b-9b, 2b-9b, 6b-9b, 3b-9b, 0, 4b-9b\n.text\n");
EVEN(masked, "and $6,%eax\n")
EVEN(compared, "and $14,%eax\ncmp $6,%eax\nja 7f\n")

#include "callees.h"

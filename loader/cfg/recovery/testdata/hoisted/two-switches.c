// Each routine has two switches: the base of the first table is in the register of the second
// by a way that is never gone, as it is where nothing else is seen of the second's own.

#define TWO(name, base) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\nlea 9f(%rip),%rbx\n" \
	"1: call note\ncmp $2,%eax\nja 11f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"3: call note\nmov $1,%edi\ncall may_exit\n" \
	"4: call note\njmp 2f\n" \
	"5: call note\njmp 1b\n" \
	"11: " base \
	"2: call note\ncmp $2,%eax\nja 8f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"6: call note\ncall note\njmp 2b\n" \
	"7: call note\ncall note\ncall note\njmp 2b\n" \
	"8: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 5b-9b, 5b-9b\n" \
	"10: .long 6b-10b, 6b-10b, 7b-10b\n" \
	".data\n.globl held_" #name "\nheld_" #name ": .quad 10b\n.text\n");
TWO(seen, "lea 10f(%rip),%rbx\nmovslq %eax,%rcx\ncmp $99,%rcx\ncmove %rcx,%rbx\n")
TWO(from_memory, "mov held_from_memory(%rip),%rbx\n")
TWO(unfollowed, "lea 10f(%rip),%rbx\nmovq %rbx,%xmm0\nmovq %xmm0,%rbx\n")

#include "callees.h"

// A machine as clang makes it: each state has a copy of the switch on a number that is known
// then, and other blocks have loaded the base of the table.

__asm__(".globl states\n.type states,@function\n"
	"states: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\nlea 9f(%rip),%rdx\n"
	"test %edi,%edi\nje 3f\n"
	"xor %eax,%eax\nmov %eax,%ebx\nmovslq (%rdx,%rbx,4),%rcx\nadd %rdx,%rcx\njmp *%rcx\n"
	"1: inc %esi\ntest %esi,%edi\nje 4f\nmov $2,%ebx\nmovslq (%rdx,%rbx,4),%rcx\n"
	"add %rdx,%rcx\njmp *%rcx\n"
	"2: dec %esi\nje 4f\nmovslq 8(%rdx),%rcx\nadd %rdx,%rcx\njmp *%rcx\n"
	"3: lea 9f+4(%rip),%rbx\nmovslq (%rbx),%rcx\nlea 9f(%rip),%rbx\nadd %rbx,%rcx\njmp *%rcx\n"
	"4: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size states,.-states\n"
	".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b, 3b-9b, 0x4000000\n.text\n");

#include "callees.h"

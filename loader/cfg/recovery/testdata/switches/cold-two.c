// Two cold cases of a switch are one part of the routine, of which neither case is the
// beginning.

__asm__(".globl cold_two\n.type cold_two,@function\n"
	"cold_two: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\ncmp $2,%edi\nja 1f\n"
	"mov %edi,%edi\nlea 9f(%rip),%rcx\n"
	"movslq (%rcx,%rdi,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
	"1: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
	".size cold_two,.-cold_two\n"
	".section .text.unlikely\n.cfi_startproc\n.cfi_def_cfa_offset 16\n"
	"4: call note\nnop\n"
	"2: call note\n"
	"3: call abort\n.cfi_endproc\n"
	".section .rodata\n.p2align 2\n9: .long 2b-9b, 1b-9b, 3b-9b, 0\n.text\n");

#include "callees.h"

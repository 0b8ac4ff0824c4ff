// A place in memory is compared, perhaps written or named otherwise, and read again for the
// index. Other code names the third entry of each table, as if another object began there.

#define PLACE(name, first, place, between) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name \
	": .cfi_startproc\nsub $136,%rsp\n.cfi_adjust_cfa_offset 136\n" first \
	"mov " place ",%eax\ncmp $1,%eax\nja 7f\n" between "lea table_of_" #name \
	"(%rip),%rcx\nmovslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n" \
	"1: inc %edx\n2: inc %edx\n3: inc %edx\n4: inc %edx\n5: inc %edx\n" \
	"7: add $136,%rsp\n.cfi_adjust_cfa_offset -136\nret\n.cfi_endproc\n.size " #name ",.-" #name \
	"\n" \
	".section .rodata\n.p2align 2\ntable_of_" #name ": .long 1b-table_of_" #name ", 2b-table_of_" \
	#name ", 3b-table_of_" #name ", 4b-table_of_" #name ", 5b-table_of_" #name ", 0\n.text\n" \
	".globl names_" #name "\nnames_" #name ": .cfi_startproc\nlea table_of_" #name \
	"+8(%rip),%rax\nret\n.cfi_endproc\n");
#define AGAIN "mov 72(%rsp),%eax\n"
PLACE(nothing, "", "72(%rsp)", "mov %esi,80(%rsp)\n" AGAIN)
PLACE(call, "lea 72(%rsp),%rdi\n", "72(%rsp)", "call note\n" AGAIN)
PLACE(pointer, "lea 72(%rsp),%rdi\n", "72(%rsp)", "mov %esi,(%rdi)\n" AGAIN)
PLACE(beneath, "lea 72(%rsp),%rdi\n", "(%rdx)", "mov %esi,72(%rsp)\nmov (%rdx),%eax\n")
PLACE(element, "", "72(%rsp)", "mov %esi,(%rsp,%rdi,4)\n" AGAIN)
PLACE(byte_element, "", "72(%rsp)", "mov %sil,8(%rsp,%rdi)\n" AGAIN)
PLACE(masked_move, "lea 72(%rsp),%rdi\n", "72(%rsp)", "maskmovdqu %xmm1,%xmm0\n" AGAIN)
PLACE(bit, "", "72(%rsp)", "bts %rdi,8(%rsp)\n" AGAIN)
PLACE(wide, "", "72(%rsp)", "vmovdqu64 %zmm0,64(%rsp)\n" AGAIN)
PLACE(push, "", "72(%rsp)", "push 8(%rsp)\n.cfi_adjust_cfa_offset 8\n" AGAIN
	"add $8,%rsp\n.cfi_adjust_cfa_offset -8\n")
PLACE(flags, "", "72(%rsp)", "pushf\n.cfi_adjust_cfa_offset 8\n" AGAIN
	"add $8,%rsp\n.cfi_adjust_cfa_offset -8\n")

#include "callees.h"

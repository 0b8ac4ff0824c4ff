// Before the switch, 40 ways part that each add to the address of its table or not: all sums
// would be 2^40.
#include "each.h"

#define WAY(n) "test %esi,%esi\nje 1f\nadd $8,%rbx\n1: dec %esi\n"
__asm__(".globl summed\n.type summed,@function\n"
	"summed: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
	"lea 9f(%rip),%rbx\n" EACH_40(WAY)
	"movzbl (%rdi),%eax\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n"
	"3: call note\n"
	"4: call note\n"
	"5: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size summed,.-summed\n"
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 4b-9b, 5b-9b, 4b-9b\n.text\n");

#include "callees.h"

// Loops around a switch on what does not change there: before the loop the case is known. With
// ADDRESSES, the table has addresses, as files have that are not position independent.

#define EARLIER(name, base, jump, cases) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\nsub $16,%rsp\n" \
	".cfi_adjust_cfa_offset 16\njmp 7f\n7: cmp $3,%rdi\nja 8f\n" base \
	"1: call note\ntest %eax,%eax\njnz 8f\njmp *" jump "\n" \
	"2: call note\n" cases "jmp 1b\n" \
	"3: call note\ncall note\njmp 1b\n" \
	"4: jmp 1b\n" \
	"8: add $16,%rsp\n.cfi_adjust_cfa_offset -16\npop %rbx\n" \
	".cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 3\n9: " ENTRIES "\n.text\n");
#ifdef ADDRESSES
#define CASE "mov 9f(,%rdi,8),%rbx\n"
#define ENTRIES ".quad 2b, 3b, 4b, 2b"
#else
#define CASE "lea 9f(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rbx\nadd %rdx,%rbx\n"
#define ENTRIES ".long 2b-9b, 3b-9b, 4b-9b, 2b-9b"
#endif
EARLIER(once, CASE, "%rbx", "")
EARLIER(changed, CASE, "%rbx", "mov %rax,%rbx\n")
EARLIER(stored, CASE "mov %rbx,8(%rsp)\n", "8(%rsp)", "mov %rax,8(%rsp)\n")

#include "callees.h"

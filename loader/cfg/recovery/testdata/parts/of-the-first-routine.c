// Nothing leads to the part of the first routine: what runs there is not known.
#include "beginend.h"

void exit(int);
int work(int a) {
	return a * 3;
}
__asm__(".globl _start\n.type _start,@function\n"
	"_start:\n.cfi_startproc\n.cfi_undefined %rip\nxor %ebp,%ebp\nmov $3,%edi\ncall work\n"
	"mov %eax,%edi\ncall exit\njmp start_part\n.cfi_endproc\n.size _start,.-_start\n"
	"start_part:\n.cfi_startproc\n.cfi_def_cfa %rbp,16\ncall work\nhlt\n.cfi_endproc\n");

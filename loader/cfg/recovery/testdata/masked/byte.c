// A byte is compared, and the index is of the bits above it, or of the whole number.

static int q;
__attribute__((noinline)) int shifted(unsigned x, int y) {
	int r = y;
	if ((unsigned char)x > 2) return 3;
	switch (x >> 8) {
	case 0: r += 3; q++; break;
	case 1: r ^= q; break;
	case 2: q -= r; break;
	case 3: r = q / 3; break;
	case 4: r -= 7; q *= 3; break;
	case 5: r *= q; break;
	default: r += 99;
	}
	return r + q;
}
__asm__(".globl changed\n.type changed,@function\n"
	"changed: .cfi_startproc\ncmp $2,%dil\nja 7f\nxor $1,%edi\nlea 9f(%rip),%rcx\n"
	"movslq (%rcx,%rdi,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
	"1: mov $1,%eax\nret\n"
	"2: mov $2,%eax\nret\n"
	"3: mov $3,%eax\nret\n"
	"4: mov $4,%eax\nret\n"
	"5: mov $5,%eax\nret\n"
	"6: mov $6,%eax\nret\n"
	"7: ret\n.cfi_endproc\n.size changed,.-changed\n"
	".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b, 3b-9b, 4b-9b, 5b-9b, 6b-9b\n.text\n");

#include "callees.h"

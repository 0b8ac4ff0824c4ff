// A function in assembly, of another name, returns twice like setjmp.
#include "eight.h"

__asm__(".type keep,@function\n"
	"keep: .cfi_startproc\nmov %rbx,(%rdi)\nmov %rbp,8(%rdi)\nmov (%rsp),%rdx\n"
	"mov %rdx,16(%rdi)\nlea 8(%rsp),%rdx\nmov %rdx,24(%rdi)\nxor %eax,%eax\nret\n"
	".cfi_endproc\n.size keep,.-keep");
__attribute__((returns_twice)) int keep(void **);
void *kept[4];
N void leave(void) {
	q++;
}
N long f(long a, unsigned v) {
	volatile unsigned x = v % 9;
	if (x > 6) return a;
	if (keep(kept)) {
		EIGHT(x) return a * 7;
	}
	x = (v + 3) & 7;
	leave();
	return a + 1;
}
static const int ints[3] = { 5, 6, 7 };
N void backwards(void) {
	for (const int *p = ints + 2; p >= ints; p--) {
		q += *p;
		__asm__ volatile("");
	}
}

#include "callees.h"

// What is called jumps to setjmp, which returns twice to the caller.
#include "eight.h"

#include <setjmp.h>
__asm__(".type keep,@function\nkeep: .cfi_startproc\njmp *%rsi\n.cfi_endproc\n.size keep,.-keep");
__attribute__((returns_twice)) int keep(void *, void *);
jmp_buf jb;
N void leave(void) {
	q++;
	if (q & 1) longjmp(jb, 1);
}
N long f(long a, unsigned v) {
	volatile unsigned x = v % 9;
	if (x > 6) return a;
	if (keep(jb, _setjmp)) {
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

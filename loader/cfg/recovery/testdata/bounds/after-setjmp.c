// A place in the frame was compared before setjmp, and is another when setjmp returns for the
// second time.
#include "eight.h"

#include <setjmp.h>
jmp_buf jb;
N void leave(void) {
	q++;
	if (q & 1) longjmp(jb, 1);
}
N long f(long a, unsigned v) {
	volatile unsigned x = v % 9;
	if (x > 6) return a;
	if (setjmp(jb)) {
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

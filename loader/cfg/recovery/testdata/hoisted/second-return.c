// A label in the frame may have been changed before a call returns for the second time, through
// a pointer that another routine has been given.

#include <setjmp.h>
jmp_buf b;
volatile int sink, times;
typedef int (*keeps)(struct __jmp_buf_tag *);
keeps kept;
__attribute__((noinline)) void keep(void) {
	kept = _setjmp;
}
__attribute__((noinline)) void leave(void) {
	sink++;
	longjmp(b, 1);
}
__attribute__((noinline)) int again(int n) {
	void *volatile state = &&one;
	if (n > 100) state = &&three;
	kept(b);
	goto *state;
one: sink += 1; state = &&two; if (times++ < 1) leave(); __asm__ volatile("nop"); goto *state;
two: sink += 10; if (n & 1) sink += 3; else sink += 4; return sink + 100;
three: sink += 20; return sink;
}

#include "callees.h"

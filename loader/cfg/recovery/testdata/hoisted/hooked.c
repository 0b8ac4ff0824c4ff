// A label lies in the frame, and is changed through a pointer between where it is known and the
// jump.

__attribute__((noinline)) void hook(void **p, void *q, int i) {
	if (i % 3 == 0) *p = q;
}
__attribute__((noinline)) int hooked(int x, int y) {
	static void *const t[] = { &&a, &&b };
	void *p;
	int r = 0;
	if (x & 8) p = t[x & 1];
	else p = t[x >> 1 & 1];
	for (int i = 0; i < 3; i++) {
		hook(&p, &&c, y + i);
		goto *p;
	a: y = y * 3; goto c;
	b: y = y - 7;
	c: y = y ^ 5; r += y;
	}
	return r + y / 3;
}

#include "callees.h"

// Two jumps go by one table: for one, it begins in its middle.

static int q;
__attribute__((noinline)) int middle(int x, int y, int k) {
	static void *const t[] = { &&a, &&b, &&c, &&d };
	if (k & 1) goto *t[x & 3];
	else {
		q++;
		goto *(t + 2)[y & 1];
	}
a: y = y * 3; q += 2;
b: y = y - 7; q ^= 3;
c: y = y ^ 5; q *= 3;
d: return y + y / 3 + q;
}

#include "callees.h"

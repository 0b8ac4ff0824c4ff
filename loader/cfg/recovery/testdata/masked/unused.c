// The mask lets two entries of the table be read: the other two have labels where no index
// leads.

__attribute__((noinline)) int holes(int x, int y) {
	static void *const t[] = { &&a, &&b, &&c, &&d };
	goto *t[x & 2];
a: y = y * 3; goto c;
b: y = y / 7; goto d;
c: y = y ^ 5; return y;
d: return y % 11;
}

#include "callees.h"

// The labels stand in records, with names and numbers between.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static const struct { const char *name; void *l; int length; } t[] = { { "a", &&A, 1 },
		{ "b", &&B, 2 }, { "d", &&D, 1 }, { "x", &&X, 1 } };
	goto *t[*pc++].l;
A: a += q; goto *t[*pc++].l;
B: a ^= 3; q++; if (a & 1) goto D; goto *t[*pc++].l;
D: a -= q * 5; q += 2; goto *t[*pc++].l;
X: return a;
}

#include "callees.h"

// The labels stand in records of nine bytes, so that they are not aligned.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static const struct __attribute__((packed)) {
		char c;
		void *l;
	}
	t[] = { { 1, &&A }, { 2, &&B }, { 3, &&D }, { 4, &&X } };
	goto *t[*pc++].l;
A: a += q; goto *t[*pc++].l;
B: a ^= 3; q++; if (a & 1) goto D; goto *t[*pc++].l;
D: a -= q * 5; q += 2; goto *t[*pc++].l;
X: return a;
}

#include "callees.h"

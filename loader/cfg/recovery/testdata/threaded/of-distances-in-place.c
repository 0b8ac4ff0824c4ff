// Distances are added to what memory holds, which makes labels of it.
#include "labels.h"

struct op { void *h; } held[4], halt;
void *const *op;
void *ops[4], *volatile base;
const void *records;
N long h(long a) {
	return q += a;
}
N long f(struct op *pc, long a) {
	long s[8] = { 0 };
	int n = 0;
	if (!pc) {
		static const long t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&X - &&A };
		halt.h = &&X;
		for (int i = 0; i < 4; i++) ops[i] += t[i];
		return 0;
	}
	goto *pc->h;
A: a += q + s[n & 7]; s[n++ & 7] = h(a); pc++; goto *pc->h;
B: a ^= 3; q++; if (a & 1) pc++; pc++; goto *pc->h;
C: a *= 3; h(a); pc++; goto *pc->h;
X: return a + s[n & 7];
}
struct op code[64];
void translate(const unsigned char *p, int n) {
	for (int i = 0; i < n; i++) code[i].h = op[p[i]];
}

#include "callees.h"

// The labels stand in packed records, and direct jumps lead to them, too.
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
		static const struct { char c; void *h; } __attribute__((packed)) t[] = { { 1, &&A },
			{ 2, &&B }, { 3, &&C }, { 4, &&X } };
		records = t;
		if (q) {
			goto A;
		}
		if (a) {
			goto B;
		}
		if (a & 2) {
			goto C;
		}
		if (a & 4) goto X;
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

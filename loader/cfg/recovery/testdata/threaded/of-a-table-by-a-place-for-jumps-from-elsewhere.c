// A table has all labels, and the stack pointer is kept as well, by which code elsewhere may
// come back to any of them.
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
		static void *const t[] = { &&A, &&B, &&C, &&X };
		op = t;
		__asm__ volatile("mov %%rsp, %0" : "=m"(held[0].h));
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

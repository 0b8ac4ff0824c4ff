// A label is the beginning of the cold part of its routine.
#include "labels.h"

struct op { void *h; } code[40];
void *const *ops;
N long h(long a) {
	return q += a;
}
N __attribute__((cold)) long ch(long a) {
	return q += a * 2;
}
N __attribute__((cold)) long cc(long a) {
	return q ^= a;
}
N long f(struct op *pc, long a) {
	static void *const t[] = { &&A, &&B, &&C, &&X, &&Y };
	long s[8] = { 0 };
	int n = 0;
	if (!pc) {
		ops = t;
		return 0;
	}
	goto *pc->h;
A: a += q + s[n & 7]; s[n++ & 7] = h(a); pc++; goto *pc->h;
B: a ^= 3; q++; if (a & 1) q += 5; pc++; goto *pc->h;
C: a *= 3; ch(a), cc(a); if (a & 2) q++; pc++; goto *pc->h;
Y: a *= 5; ch(a), cc(a);
	if (a & 4) {
		q++;
		return a + 7;
	}
	pc++;
	return a + s[n & 7];
X: return a + s[n & 7];
}

#include "callees.h"

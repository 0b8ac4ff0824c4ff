// Which table it is lies in the frame, and a call that has its address may make it another: one
// table alone was taken for all that the jump goes by.
#include "labels.h"

N void set(void *const **p, void *const *v, int k) {
	q++;
	if (k & 1) *p = v;
}
N long f(const unsigned char *pc, long a, int k) {
	static void *const tA[] = { &&A, &&B, &&X }, *const tB[] = { &&C, &&D, &&X };
	void *const *tab = tA;
	set(&tab, tB, k);
	GO(tab);
A: a += q; GO(tab);
B: a ^= 3; q++; if (a & 1) goto D; if (a & 2) goto C; GO(tab);
C: a *= 3; GO(tab);
D: a -= q * 5; q += 2; GO(tab);
X: return a;
}

#include "callees.h"

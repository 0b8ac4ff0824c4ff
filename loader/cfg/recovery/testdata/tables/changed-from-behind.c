// Which table it is lies before what a call is given the address of, in the same structure: the
// callee writes there nonetheless.
#include "labels.h"

struct vm { const int *tab; long n; };
N void set(long *n, const int *v, int k) {
	q++;
	if (k & 1) ((struct vm *)((char *)n - 8))->tab = v;
}
N long f(const unsigned char *pc, long a, int k) {
	static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A },
		tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
	struct vm v;
	v.tab = tA;
	v.n = k;
	set(&v.n, tB, k);
	const int *tab = v.tab;
OFFSET: goto *(&&A + tab[*pc++ & 3]);
A: a += q; goto OFFSET;
B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; goto OFFSET;
C: a *= 3; goto OFFSET;
D: a -= q * 5; q += 2; goto OFFSET;
X: return a;
}

#include "callees.h"

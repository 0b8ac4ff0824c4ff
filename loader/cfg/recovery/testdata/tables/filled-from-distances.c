// The table may be written, and an entry is made of a distance, so that no address of that
// label stands anywhere.
#include "labels.h"

N long f(const unsigned char *pc, long a, int k) {
	static void *t[] = { &&A, &&B, &&X, &&A };
	static const int u[] = { &&C - &&A, &&D - &&A };
	if (k) t[3] = &&A + u[k & 1];
	GO(t);
A: a += q; GO(t);
B: a ^= 3; q++; if (a & 1) goto D; if (a & 2) goto C; GO(t);
C: a *= 3; GO(t);
D: a -= q * 5; q += 2; GO(t);
X: return a;
}

#include "callees.h"

// The table may be written, and an entry is filled from a second table with a label that the
// first never had.
#include "labels.h"

N long f(const unsigned char *pc, long a, int k) {
	static int t[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&A - &&A };
	static const int u[] = { &&A - &&A, &&D - &&A, &&B - &&A };
	if (k) t[3] = u[k & 1];
	OFF(t);
A: a += q; OFF(t);
B: a ^= 3; q++; if (a & 1) goto D; OFF(t);
D: a -= q * 5; q += 2; OFF(t);
X: return a;
}

#include "callees.h"

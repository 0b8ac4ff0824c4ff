// Another loop of the routine names a place in the middle of the table, right behind the gap,
// as if another table began there.
#include "labels.h"

N long f(const unsigned char *pc, long a, int k) {
	static const struct op { int off, n; } t[] = { { &&A - &&A, 1 }, { &&B - &&A, 2 },
		{ &&X - &&A, 1 }, { -1, 0 }, { -1, 0 }, { &&C - &&A, 3 }, { &&D - &&A, 2 } };
	if (k) {
		for (const struct op *p = t + 4; p < t + 7; p++) q += p->n;
		return q;
	}
OFFSET: goto *(&&A + t[*pc++].off);
A: a += q; goto OFFSET;
B: a ^= 3; q++; goto OFFSET;
C: a *= 3; goto OFFSET;
D: a -= q * 5; q += 2; goto OFFSET;
X: return a;
}

#include "callees.h"

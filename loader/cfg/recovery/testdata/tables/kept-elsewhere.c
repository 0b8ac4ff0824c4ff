// A label is kept in memory between two calls of the routine, and a jump goes to what was kept.
#include "labels.h"

struct vm { void *resume; const unsigned char *pc; };
N long f(struct vm *v, long a) {
	static const int t[] = { &&A - &&A, &&B - &&A, &&D - &&A, &&X - &&A };
	const unsigned char *pc = v->pc;
	if (v->resume) goto *v->resume;
	OFF(t);
A: a += q; OFF(t);
B: a ^= 3; q++; if (a & 1) goto D; OFF(t);
D: a -= q * 5; q += 2; v->resume = &&A + t[*pc++]; v->pc = pc; return a;
X: v->resume = 0; return a;
}

#include "callees.h"

// One jump goes by the table, and another by its second half, which begins behind a gap.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static void *const t[] = { &&A, &&B, 0, &&C, &&D, &&X };
	GO(t);
A: a += q; GO(t);
B: a ^= 3; q++; GO((t + 3));
C: a *= 3; GO(t);
D: a -= q * 5; q += 2; GO(t);
X: return a;
}

#include "callees.h"

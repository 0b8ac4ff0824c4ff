// The entries that no label fills are nought, far more of them than labels: the last label was
// lost, as the table was taken to end at the gap.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static void *const t[128] = { [1] = &&A, [2] = &&B, [3] = &&C, [4] = &&X, [0x40] = &&D };
	GO(t);
A: a += q; GO(t);
B: a ^= 3; q++; GO(t);
C: a *= 3; if (a & 1) goto D; GO(t);
D: a -= q * 5; q += 2; GO(t);
X: return a;
}

#include "callees.h"

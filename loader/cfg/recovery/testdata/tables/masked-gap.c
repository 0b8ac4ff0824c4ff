// A null entry is asked for before the jump, and the mask bounds the index: what lies behind
// the gap, to the last entry, is of the table.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static const void *const t[64] = { [1] = &&A, [2] = &&B, [3] = &&C, [32] = &&D, [63] = &&X };
	for (;;) {
		const void *h = t[*pc++ & 63];
		if (!h) continue;
		goto *h;
	A: a += q; continue;
	B: a ^= 3; q++; if (a & 1) goto D; continue;
	C: a *= 3; if (a & 4) goto X; continue;
	D: a -= q * 5; q += 2; continue;
	X: return a;
	}
}

#include "callees.h"

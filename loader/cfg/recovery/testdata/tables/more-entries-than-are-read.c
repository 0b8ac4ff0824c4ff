// There are more entries than are read of one table, and a label stands in one entry behind
// those.
#include "labels.h"

N long f(const unsigned short *pc, long a) {
	static const int t[65536] = { [0 ... 65535] = &&X - &&A, [1] = &&A - &&A, [2] = &&B - &&A,
		[8000] = &&D - &&A };
OFFSET: goto *(&&A + t[*pc++]);
A: a += q; goto OFFSET;
B: a ^= 3; q++; if (a & 1) goto D; goto OFFSET;
D: a -= q * 5; q += 2; goto OFFSET;
X: return a;
}

#include "callees.h"

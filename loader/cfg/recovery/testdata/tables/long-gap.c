// Almost a thousand entries lie between the last label and those before it.
#include "labels.h"

N long f(const unsigned short *pc, long a) {
	static const int t[1024] = { [0 ... 1023] = -1, [1] = &&A - &&A, [2] = &&B - &&A,
		[3] = &&X - &&A, [1000] = &&D - &&A };
OFFSET: goto *(&&A + t[*pc++ & 1023]);
A: a += q; goto OFFSET;
B: a ^= 3; q++; if (a & 1) goto D; goto OFFSET;
D: a -= q * 5; q += 2; goto OFFSET;
X: return a;
}

#include "callees.h"

// What fills a table of distances is -1, as if it led to before the first label: the entry
// behind it was lost.
#include "labels.h"

N long f(const unsigned char *pc, long a) {
	static const int t[32] = { [0 ... 31] = -1, [1] = &&A - &&A, [2] = &&B - &&A,
		[3] = &&X - &&A, [31] = &&D - &&A };
	OFF(t);
A: a += q; OFF(t);
B: a ^= 3; q++; if (a & 1) goto D; OFF(t);
D: a -= q * 5; q += 2; OFF(t);
X: return a;
}

#include "callees.h"

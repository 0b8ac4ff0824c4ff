// Which table it is lies in an array in the frame, and a store by an index, of which nothing is
// known, may make it another.
#include "labels.h"

N long f(const unsigned char *pc, long a, int k) {
	static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A };
	static const char pad[3000] = { 1 };
	static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
	const int *tabs[2];
	tabs[0] = tA;
	tabs[1] = tA;
	q += pad[k];
	if (k) q += 5;
	tabs[k & 1] = tB;
	goto *(&&A + tabs[0][*pc++ & 3]);
A: a += q; return a;
B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a;
C: a *= 3; return a;
D: a -= q * 5; q += 2; return a;
X: return a;
}

#include "callees.h"

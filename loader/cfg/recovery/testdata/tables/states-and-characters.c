// The tables of a scanner, one a state: most entries lead nowhere, and the last of all has a
// label that no other has.
#include "labels.h"

N long f(const unsigned char *s, long a) {
	static const int t[4][256] = { [0 ... 3] = { [0 ... 255] = -1 }, [0]['a'] = &&A - &&A,
		[0]['b'] = &&B - &&A, [0][0] = &&X - &&A, [3][255] = &&D - &&A };
	unsigned st = 0;
NEXT: goto *(&&A + t[st & 3][*s++]);
A: a += q; goto NEXT;
B: a ^= 3; q++; st = 3; goto NEXT;
D: a -= q * 5; q += 2; st = 0; goto NEXT;
X: return a;
}

#include "callees.h"

// The index begins with a thousand, so that code names a place far before the table, where
// something else lies.
#include "labels.h"

N long f(const long *pc, long a) {
	static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&D - &&A, &&X - &&A };
OFFSET: goto *(&&A + t[*pc++ - 1000]);
A: a += q; goto OFFSET;
B: a ^= 3; q++; goto OFFSET;
C: a *= 3; goto OFFSET;
D: a -= q * 5; q += 2; goto OFFSET;
X: return a;
}

#include "callees.h"

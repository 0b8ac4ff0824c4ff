// The least index is -3 in one switch, so that code names a place in the middle of its table,
// and 2 in the other, so that it names one before it.
#include "eight.h"

N long from_minus_three(long a, long x) {
	switch (x) {
	case -3: a += q; break;
	case -2: a ^= q + 5; break;
	case -1: q += a; a += 3; break;
	case 0: a *= 3; q++; break;
	case 1: a -= q; break;
	case 2: a |= q; q ^= 7; break;
	case 3: q += 9 * a; break;
	default: __builtin_unreachable();
	}
	return a * 7;
}
N long distances(long a, unsigned long y) {
	static const int t[] = { &&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a, &&f - &&a,
		&&g - &&a, &&h - &&a };
	goto *(&&a + t[y - 2]);
a: q += a;
b: a = a * 3 + q;
c: q ^= a; a += 9;
d: a ^= q;
e: a -= q;
f: q++; a *= 5;
g: q = a / 3;
h: a += 7 * q; return a - q;
}
void *called[] = { from_minus_three, distances };

#include "callees.h"

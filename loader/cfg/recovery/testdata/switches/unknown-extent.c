// Nothing bounds the indices, and other code names addresses amid the tables: where they end,
// or lie, is not known.
#include "eight.h"

static const long longs[3] = { 5, 6, 7 };
N long backwards(void) {
	long a = 0;
	for (const long *p = longs + 2; p >= longs; p--) {
		a += *p;
		__asm__ volatile("");
	}
	return a;
}
N long element(long i) {
	return longs[i - 1];
}
N long distances(long a, unsigned long y) {
	static const int t[] = { &&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a, &&f - &&a,
		&&g - &&a, &&h - &&a };
	goto *(&&a + t[y]);
a: q += a;
b: a = a * 3 + q;
c: q ^= a; a += 9;
d: a ^= q;
e: a -= q;
f: q++; a *= 5;
g: q = a / 3;
h: a += 7 * q; return a - q;
}
N long from_sixty(long a, unsigned long x, unsigned long y) {
	EIGHT(x & 7) switch (y) {
	case 64: q += 4; a++; break;
	case 65: q ^= 8; a *= 3; break;
	case 66: q -= 2 * a; break;
	case 67: q = a / 5; break;
	case 68: q *= 5; break;
	case 69: q += 7; a |= 6; break;
	default: __builtin_unreachable();
	}
	return a - q;
}
void *called[] = { backwards, element, distances, from_sixty };

#include "callees.h"

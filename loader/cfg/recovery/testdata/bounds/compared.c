// The comparison bounds what the index is made of, and three is subtracted from it before it is
// used.
#include "eight.h"

N long f(long a, unsigned x) {
	if (x > 7) return a;
	volatile long v = (long)x - 3;
	long y = v;
	switch (y) {
	case -3: a += q; break;
	case -2: a ^= q + 5; break;
	case -1: q += a; a += 3; break;
	case 0: a *= 3; q++; break;
	case 1: a -= q; break;
	case 2: a |= q; q ^= 7; break;
	case 3: q += 9 * a; break;
	case 4: a *= 7; break;
	default: __builtin_unreachable();
	}
	return a * 7 + y;
}

#include "callees.h"

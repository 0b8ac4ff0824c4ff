// A variable is compared, and changed through a pointer that may be to it.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned x;
	unsigned *p = pick(&x, v);
	if (x > 3) return 0;
	*p = v >> 1 & 7;
	EIGHT(x) set(&x, 1);
	return a * 7;
}

#include "callees.h"

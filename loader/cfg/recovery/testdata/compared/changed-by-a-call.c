// A variable is compared, and a call changes it before it is the index: the comparison was
// taken for a bound on the index.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned x;
	set(&x, v);
	if (x > 3) return 0;
	set(&x, a);
	EIGHT(x) return a * 7;
}

#include "callees.h"

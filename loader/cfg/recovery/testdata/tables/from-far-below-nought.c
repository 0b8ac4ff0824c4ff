// The index may be as little as -20, so that code names a place amid the table.
#include "each.h"
#include "labels.h"

#define ENTRY(n) &&l##n - &&l30,
#define LABEL(n) l##n: a += q; return a * n;
N long f(long a, long x) {
	static const int t[] = { EACH_46(ENTRY) };
	goto *(&&l30 + t[x + 20]);
	EACH_46(LABEL)
}

#include "callees.h"

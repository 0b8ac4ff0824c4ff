// A table that bytes index, with an entry for each of them, behind one whose index has no
// bound.
#include "each.h"
#include "labels.h"

#define SHORT_ENTRY(n) &&l##n,
#define SHORT_LABEL(n) l##n: a += q * n; q++; goto next;
#define LONG_ENTRY(n) &&m##n,
#define LONG_LABEL(n) m##n: a ^= q + n; q += 2; goto end;
N long f(long a, unsigned long x, unsigned char c) {
	static void *const t1[] = { EACH_40(SHORT_ENTRY) }, *const t2[] = { EACH_256(LONG_ENTRY) };
	goto *t1[x];
	EACH_40(SHORT_LABEL)
next: goto *t2[c];
	EACH_256(LONG_LABEL)
end: return a * 7;
}

#include "callees.h"

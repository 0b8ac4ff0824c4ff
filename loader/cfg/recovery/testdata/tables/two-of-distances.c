// Two tables of distances, one behind the other, both of which a byte indexes: the first ends
// where the second begins.
#include "each.h"
#include "labels.h"

#define ENTRY1(n) &&l##n - &&l30,
#define LABEL1(n) l##n: a += q * n; q++; goto next;
#define ENTRY2(n) &&m##n - &&l30,
#define LABEL2(n) m##n: a ^= q + n; q += 2; goto end;
N long f(long a, unsigned char *p) {
	static const int t1[] = { EACH_256(ENTRY1) }, t2[] = { EACH_256(ENTRY2) };
	goto *(&&l30 + t1[*p++]);
	EACH_256(LABEL1)
next: goto *(&&l30 + t2[*p++]);
	EACH_256(LABEL2)
end: return a * 7;
}

#include "callees.h"

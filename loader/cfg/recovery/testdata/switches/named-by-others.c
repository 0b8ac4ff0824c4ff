// Other code names an address within the tables, as that of the object before it less what an
// index or a pointer begins with: the tables were taken to end there.
#include "eight.h"

static const long longs[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
static const int ints[7] = { 3, 1, 4, 5, 9, 2, 6 };
N long element(long i) {
	return longs[i - 1] * 3;
}
N void backwards(void) {
	for (const int *p = ints + 6; p >= ints; p--) {
		q += *p;
		__asm__ volatile("");
	}
}
N long f(long a, unsigned long x) {
	EIGHT(x) return a;
}
N long from_three(long a, unsigned long x) {
	switch (x) {
	case 3: q += 4; a++; break;
	case 4: q ^= 8; a *= 3; break;
	case 5: q -= 2 * a; break;
	case 6: q = a / 5; break;
	case 7: q *= 5; break;
	case 8: q += 7; a |= 6; break;
	default: __builtin_unreachable();
	}
	return a - q;
}
N long labels(long a, int y) {
	static const void *const u[] = { &&a, &&b, &&c, &&d };
	goto *u[y - 2];
a: q += a;
b: a = a * 3 + q;
c: q ^= a; a += 9;
d: return a ^ q;
}
void *called[] = { element, backwards, f, from_three, labels };

#include "callees.h"

// An element of an array is compared, and another is the index: with arguments pushed between,
// their places look the same relative to the stack pointer.
#include "eight.h"

unsigned m1, m2;
N long many(int a, int b, int c, int d, int e, int g, int h, int i) {
	return q += h + i;
}
N long f(long a, unsigned v) {
	unsigned xs[6];
	for (int i = 0; i < 6; i++) set(xs + i, v + i);
	if (xs[5] <= 3) {
		many(1, 2, 3, 4, 5, 6, m1, m2);
		EIGHT(xs[1])
	}
	return a * 7;
}

#include "callees.h"

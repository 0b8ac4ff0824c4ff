// An element of an array is compared, and one is changed by an index that may be its own.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned x[8];
	for (int i = 0; i < 8; i++) set(x + i, v + i);
	if (x[2] <= 3) {
		x[v & 7] = v >> 1 & 7;
		EIGHT(x[2])
	}
	return a * 7 + x[1];
}

#include "callees.h"

// An element of an array is compared, and others are the index: the flags are pushed between,
// so that the places look the same relative to the stack pointer.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned xs[6];
	for (int i = 0; i < 6; i++) set(xs + i, v + i);
	if (xs[5] <= 3) {
		q += __builtin_ia32_readeflags_u64();
		EIGHT(xs[4]) EIGHT(xs[3])
	}
	return a * 7;
}

#include "callees.h"

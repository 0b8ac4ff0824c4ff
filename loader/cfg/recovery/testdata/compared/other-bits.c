// The low byte of a number is compared, and the bits above it are the index.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned char c = v;
	q += "a string to read from"[c & 15];
	if (c > 2) return c;
	EIGHT(v >> 8) return a * 7;
}

#include "callees.h"

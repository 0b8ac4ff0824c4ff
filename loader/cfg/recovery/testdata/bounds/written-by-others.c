// A variable is compared, and read again for the index: others may have written it between.
#include "eight.h"

static volatile unsigned state;
N void change(unsigned v) {
	state = v;
}
N long f(long a) {
	if (state <= 6) {
		a += q;
		a ^= q;
		a += q;
		EIGHT(state)
	}
	return a * 7;
}
static const int ints[3] = { 5, 6, 7 };
N void backwards(void) {
	for (const int *p = ints + 2; p >= ints; p--) {
		q += *p;
		__asm__ volatile("");
	}
}

#include "callees.h"

// Tiny leaves (one instruction and a return): called directly, through pointers, both, in chains,
// and by qsort.
#include <stdlib.h>

#include "checksum.h"

NOINLINE static int twice_plus(int x) { return x * 2 + 7; }
NOINLINE static int identity(int x) { return x; }
NOINLINE static int zero(void) { return 0; }
NOINLINE static void nothing(void) { __asm__ volatile(""); }
NOINLINE static int both_ways(int x) { return x + 1; }
NOINLINE static int outer(int x) { return twice_plus(identity(x)); }
NOINLINE static int outermost(int x) { return outer(x) + outer(x + 1); }

// qsort and bsearch call these; one of them has no probe: it decides nothing.
static int always_equal(const void *a, const void *b)
{
	(void)a;
	(void)b;
	return 0;
}
static int difference(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

typedef int (*unary)(int);
static unary volatile pointers[] = {twice_plus, identity, both_ways, outer};

int main(void)
{
	int values[12];
	for (int i = 0; i < 12; i++)
		values[i] = twice_plus(i * 5 % 12) + zero();
	qsort(values, 12, sizeof *values, always_equal);
	mix(values[3]);
	qsort(values, 12, sizeof *values, difference);
	for (int i = 0; i < 12; i++)
		mix(values[i]);
	for (int i = 0; i < 60; i++) {
		nothing();
		if (i % 3)
			mix(pointers[i % 4](i));
		else
			mix(both_ways(i));
		mix(outermost(identity(i)));
	}
	const int *found = bsearch(&values[7], values, 12, sizeof *values, difference);
	mix(found ? *found : -1);
	report();
	return 0;
}

// longjmp over several frames, out of recursion, out of a qsort callback, out of an outer qsort
// from an inner one.
#include <setjmp.h>
#include <stdlib.h>

#include "checksum.h"

static jmp_buf top, middle;
static int budget;

NOINLINE static void deep(int n, int code)
{
	mix(n);
	if (n == 0)
		longjmp(top, code);
	deep(n - 1, code);
	mix(1000); // never
}

NOINLINE static void silent_frame(int n, int code) { deep(n, code); }

NOINLINE static int between(int n)
{
	int code = setjmp(middle);
	if (code == 0) {
		if (n & 1)
			longjmp(middle, 3);
		if (n & 2)
			silent_frame(n, 40 + n);
		return 1;
	}
	return code + n;
}

static int jumping_compare(const void *a, const void *b)
{
	if (--budget == 0)
		longjmp(top, 77);
	return *(const int *)a - *(const int *)b;
}

static int nesting_compare(const void *a, const void *b)
{
	int inner[] = {5, 3, 4, 1};
	qsort(inner, 4, sizeof *inner, jumping_compare);
	return *(const int *)b - *(const int *)a + inner[0] - 1;
}

NOINLINE static void sort_with(int (*compare)(const void *, const void *), int allowed)
{
	int values[10];
	for (int i = 0; i < 10; i++)
		values[i] = i * 7 % 10;
	budget = allowed;
	qsort(values, 10, sizeof *values, compare);
	mix(values[0] * 10 + values[9]);
}

int main(void)
{
	for (volatile int n = 0; n < 8; n++) {
		int code = setjmp(top);
		if (code == 0)
			mix(between(n));
		else
			mix(code * 3);
	}
	for (volatile int allowed = 1; allowed < 60; allowed += 12) {
		if (setjmp(top) == 0)
			sort_with(jumping_compare, allowed);
		else
			mix(allowed);
		if (setjmp(top) == 0)
			sort_with(nesting_compare, allowed * 2);
		else
			mix(allowed + 1);
	}
	report();
	return 9;
}

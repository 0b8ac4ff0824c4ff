// Routines that end by a jump into the library, which calls back again and again while their
// callers wait.
#include <stdlib.h>

#include "checksum.h"

static int compare(const void *a, const void *b)
{
	int d = *(const int *)a - *(const int *)b;
	mix(d & 7);
	return d;
}

static int compare_back(const void *a, const void *b) { return compare(b, a); }

// A sibling call: the library returns in its place.
NOINLINE static void sort(int *values, int n, int (*order)(const void *, const void *))
{
	qsort(values, n, sizeof *values, order);
}

NOINLINE static void search(int *values, int n, const int *key)
{
	bsearch(key, values, n, sizeof *values, compare);
}

// Anybody may call these two, for their addresses are taken.
static void sort_up(int *values, int n) { sort(values, n, compare); }
static void sort_down(int *values, int n) { qsort(values, n, sizeof *values, compare_back); }

static void note(int *values, int n) { mix(values[n - 1]); }

typedef void use(int *values, int n);
static use *volatile uses[] = {sort_up, sort_down, note};

// No event comes between the two calls unless the first is known to leave things open.
NOINLINE static int sorted(int *values, int n, use *then)
{
	sort_down(values, n);
	then(values, n);
	return values[0];
}

// Without an event itself, and its caller goes on to a call by pointer.
NOINLINE static void between(int *values, int n) { sort(values, n, compare); values[0]++; }

NOINLINE static int twice(int *values, int n, use *then)
{
	between(values, n);
	then(values, n);
	search(values, n, &values[n / 2]);
	then(values, n);
	return values[1];
}

int main(void)
{
	int values[9];
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 9; i++)
			values[i] = (i * 7 + round) % 11;
		mix(sorted(values, 5 + round % 4, uses[round % 3]));
		mix(twice(values, 9, uses[(round + 1) % 3]));
		uses[round % 2](values, 9);
	}
	report();
	return 8;
}

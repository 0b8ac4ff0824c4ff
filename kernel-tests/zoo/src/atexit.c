// atexit and on_exit handlers: in reverse order, one that registers another, one that sorts, after
// exit in a deep callee.
#define _GNU_SOURCE
#include <stdlib.h>

#include "checksum.h"

static void last(void)
{
	mix(1);
	report();
}

static void added_late(void) { mix(5); }

static void adds(void)
{
	mix(2);
	atexit(added_late);
}

static int descending(const void *a, const void *b) { return *(const int *)b - *(const int *)a; }

static void sorts(void)
{
	int values[] = {3, 1, 4, 1, 5, 9, 2, 6};
	qsort(values, 8, sizeof *values, descending);
	for (int i = 0; i < 8; i++)
		mix(values[i]);
}

static void with_status(int status, void *argument) { mix(status + (argument != 0)); }

NOINLINE static int leave(int n)
{
	if (n == 0)
		exit(33);
	return leave(n - 1) + 1;
}

int main(void)
{
	atexit(last);
	atexit(adds);
	atexit(sorts);
	on_exit(with_status, (void *)last);
	return leave(5);
}

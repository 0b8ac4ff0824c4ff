// Waits for its input beneath code that is not its own, in the comparison that qsort calls back,
// for one line a round as server does.
// Whoever comes meanwhile sees the callback alone, and has to find out where its callers were when
// they go on.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

enum { VALUES = 6 };

static int asked, ended;

NOINLINE static void wait_for_round(void)
{
	char c = 0;
	while (c != '\n') {
		if (read(0, &c, 1) != 1) {
			ended = 1;
			return;
		}
		for (int i = 0; i < c % 8; i++)
			mix(i + c);
	}
	report();
	fflush(stdout);
}

static int compare(const void *a, const void *b)
{
	if (!asked++)
		wait_for_round();
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}

NOINLINE static void sort_once(int *values, int round)
{
	for (int i = 0; i < VALUES; i++)
		values[i] = (i * 5 + round) % 7;
	asked = 0;
	qsort(values, VALUES, sizeof *values, compare);
	for (int i = 0; i < VALUES; i++)
		if (values[i] % 2)
			mix(values[i]);
}

int main(void)
{
	int values[VALUES];
	for (int round = 0; !ended; round++)
		sort_once(values, round);
	report();
	return 5;
}

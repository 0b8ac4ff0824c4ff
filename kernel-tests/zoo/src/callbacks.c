// Callbacks in callbacks: qsort calls the program, which calls bsearch, which calls the program;
// pointers into the library.
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

static int table[16];
static int depth;

static int plain(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}

static int searching(const void *a, const void *b)
{
	const int *x = bsearch(a, table, 16, sizeof *table, plain);
	const int *y = bsearch(b, table, 16, sizeof *table, plain);
	if (!x || !y)
		return !!x - !!y;
	return (int)(y - x);
}

static int sorting(const void *a, const void *b)
{
	int small[] = {*(const int *)a, *(const int *)b, 5};
	if (depth < 2) {
		depth++;
		qsort(small, 3, sizeof *small, depth == 1 ? sorting : searching);
		depth--;
	}
	return plain(a, b) + (small[0] > 100);
}

NOINLINE static void sort_with(int (*compare)(const void *, const void *))
{
	int values[9];
	for (int i = 0; i < 9; i++)
		values[i] = i * 5 % 9 * 2;
	qsort(values, 9, sizeof *values, compare);
	for (int i = 0; i < 9; i++)
		mix(values[i]);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef int (*compare_strings)(const char *, const char *);
static compare_strings volatile comparers[] = {strcmp, strcoll};

int main(void)
{
	for (int i = 0; i < 16; i++)
		table[i] = i * 2;
	sort_with(plain);
	sort_with(searching);
	sort_with(sorting);
	const char *names[] = {"qsort", "bsearch", "strcmp", "abs", "malloc", "free"};
	qsort(names, 6, sizeof *names, by_name);
	for (int i = 0; i < 6; i++)
		mix(names[i][0]);
	for (int i = 0; i < 5; i++)
		mix(comparers[i % 2](names[i], names[i + 1]) < 0);
	int (*volatile absolute)(int) = abs;
	mix(absolute(-12));
	report();
	return 4;
}

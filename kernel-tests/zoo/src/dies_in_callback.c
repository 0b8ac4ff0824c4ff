// A comparison faults at its first memory access, and nothing handles that: its first instructions
// are the last that run.
#include <stdlib.h>

#include "checksum.h"

NOINLINE static int compare(const void *a, const void *b)
{
	return **(int *const volatile *)a - **(int *const volatile *)b;
}

int main(void)
{
	int number = 3, *list[] = {&number, 0};
	mix(number);
	report();
	fflush(stdout);
	qsort(list, 2, sizeof *list, compare);
	report();
	return 0;
}

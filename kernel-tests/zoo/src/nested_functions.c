// Nested functions of GNU C that leave their parents' callees by a jump to a label of the parent.
#include <stdlib.h>

#include "checksum.h"

NOINLINE static int count_down(int n)
{
	__label__ out;
	int visits = 0;
	void inner(int k)
	{
		if (k == 0)
			goto out;
		visits++;
		inner(k - 1);
	}
	inner(n);
	visits += 100; // does not run
out:
	return visits;
}

// Out of a library's callback.
NOINLINE static int find(int *values, int n, int key)
{
	__label__ found;
	int at = -1;
	int compare(const void *a, const void *b)
	{
		if (*(const int *)a == key || *(const int *)b == key) {
			at = key;
			goto found;
		}
		return *(const int *)a - *(const int *)b;
	}
	qsort(values, n, sizeof *values, compare);
	at = n * 3;
	for (int i = 0; i < n; i++)
		at += values[i];
found:
	return at;
}

int main(void)
{
	for (int n = 0; n < 4; n++)
		mix(count_down(n));
	for (int key = 0; key < 8; key++) {
		int values[] = {5, 2, 9, 1, 4, 7};
		mix(find(values, 6, key));
	}
	report();
	return 7;
}

// An allocator of its own, which the C library calls as well.
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

static _Alignas(16) char pool[1 << 16];
static volatile size_t used, largest;

void *malloc(size_t n)
{
	size_t at = used;
	used += (n + 15) & ~(size_t)15;
	if (used > sizeof(pool))
		return 0;
	if (n > largest)
		largest = n;
	return pool + at;
}

void free(void *p)
{
	if (p == pool)
		largest = 0;
}

void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }

void *realloc(void *p, size_t n)
{
	void *q = malloc(n);
	return p && q ? memcpy(q, p, n) : q;
}

NOINLINE static unsigned twice(const char *text)
{
	char *a = strdup(text);
	if (text[0] == 'c')
		mix(a[0]);
	char *b = strndup(a, 3);
	unsigned sum = a[1] + b[0];
	free(a);
	free(b);
	return sum;
}

int main(int argc, char **argv)
{
	char *volatile kept = strdup("first");
	for (int i = 0; i < 20; i++)
		mix(twice(i % 3 ? "an" : "cat"));
	free(kept);
	report();
}

// Tail calls through tables of functions that hold the caller itself: they are no jump tables.
#include "checksum.h"

typedef unsigned (*step)(int, unsigned);
NOINLINE static unsigned halve(int n, unsigned x);
NOINLINE static unsigned labels(int n, unsigned x);
NOINLINE static unsigned triple(int n, unsigned x);

static step changing[3] = {labels, triple, triple};
static const step constant[4] = {halve, halve, triple, labels};

unsigned halve(int n, unsigned x)
{
	if (n <= 0)
		return x;
	return constant[x & 3](n - 1, x / 2 + n);
}

unsigned labels(int n, unsigned x)
{
	static const void *const to[] = {&&add, &&flip, &&done, &&flip};

	if (n <= 0)
		return x;
	goto *to[x & 3];
add:
	x += n;
flip:
	x ^= 3;
done:
	return changing[n & 1](n - 1, x);
}

unsigned triple(int n, unsigned x)
{
	if (n <= 0)
		return x;
	if (x & 1)
		x *= 3;
	return constant[n & 3](n - 1, x + 1);
}

int main(int argc, char **argv)
{
	if (argc > 5)
		changing[0] = triple;
	for (int n = 0; n < 30; n++)
		mix(halve(n, n * 7) + labels(n, n));
	report();
	return 0;
}

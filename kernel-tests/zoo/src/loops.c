// Loops: nests, an irreducible one, single-block do-while, no condition at all, an entry block that
// is a loop header.
#include <stdlib.h>

#include "checksum.h"

NOINLINE static void nest(int n)
{
	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++) {
			if ((i ^ j) & 1)
				continue;
			for (int k = 0; k < 3; k++)
				mix(i * j + k);
			if (j > 9)
				break;
		}
}

NOINLINE static unsigned single_block(unsigned n)
{
	unsigned product = 1;
	do {
		product *= n | 1;
		n--;
	} while (n);
	return product;
}

// Two entries into one cycle: neither label dominates the other.
NOINLINE static int irreducible(int n, int upper)
{
	int steps = 0;
	if (upper)
		goto high;
low:
	steps += 3;
	mix(steps);
	if (--n <= 0)
		return steps;
high:
	steps += 5;
	if (n % 3 == 0)
		n--;
	if (n > 0)
		goto low;
	return steps;
}

// With optimisation the routine's first block is the target of its own back edge.
NOINLINE static unsigned entry_is_header(unsigned x, unsigned y)
{
	if (y == 0)
		return x;
	return entry_is_header(y, x % y);
}

NOINLINE static unsigned collatz(unsigned n)
{
	unsigned steps = 0;
	while (n != 1) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

NOINLINE static void forever(int n)
{
	while (1) {
		mix(n);
		if (n-- == 0) {
			report();
			exit(7);
		}
	}
}

int main(void)
{
	nest(14);
	for (unsigned n = 1; n < 20; n++)
		mix(single_block(n));
	for (int n = 0; n < 12; n++)
		mix(irreducible(n, n & 1));
	mix(entry_is_header(1071, 462));
	for (unsigned n = 1; n < 20; n++)
		mix(collatz(n));
	forever(20);
}

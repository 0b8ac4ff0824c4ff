// Tail calls: sibling, conditional, indirect, to one of two, in a cycle, out of a switch, to a
// library, and with stack arguments.
#include <string.h>

#include "checksum.h"

NOINLINE static unsigned leaf(unsigned x) { return x * 5 + 1; }
NOINLINE static unsigned sibling(unsigned x) { return leaf(x ^ 3); }
NOINLINE static unsigned conditional(unsigned x)
{
	if (x & 4)
		return leaf(x);
	if (x & 2)
		return sibling(x + 1);
	return x;
}

NOINLINE static unsigned ping(unsigned n, unsigned acc);
NOINLINE static unsigned pong(unsigned n, unsigned acc)
{
	if (n == 0)
		return acc;
	return ping(n - 1, acc * 3);
}
NOINLINE static unsigned ping(unsigned n, unsigned acc)
{
	if (n == 0)
		return ~acc;
	return pong(n - 1, acc + n);
}

typedef unsigned (*unary)(unsigned);
static unary volatile table[] = {leaf, sibling, conditional};

NOINLINE static unsigned indirect(unsigned x) { return table[x % 3](x); }
NOINLINE static unsigned guarded(unsigned x) { return x % 5 ? table[x % 2](x) : indirect(x + 1); }

// What is jumped to is chosen without a branch, before the frame is taken down.
NOINLINE static unsigned choose(const unsigned *kinds, unsigned x)
{
	static volatile unsigned seen;
	seen = leaf(x);
	return (kinds[x % 4] & 2 ? leaf : sibling)(x + seen);
}

NOINLINE static unsigned dispatch(unsigned op, unsigned x)
{
	switch (op) {
	case 0: return leaf(x);
	case 1: return sibling(x);
	case 2: return conditional(x);
	case 3: return indirect(x);
	case 4: return guarded(x);
	case 5: return ping(x % 7, x);
	}
	return 0;
}

NOINLINE static unsigned many(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
	unsigned f, unsigned g, unsigned h)
{
	return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 11 + g * 13 + h * 17;
}
NOINLINE static unsigned many_swapped(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
	unsigned f, unsigned g, unsigned h)
{
	return many(h, g, f, e, d, c, b, a);
}

// The jump leaves the image.
NOINLINE static size_t to_library(const char *s) { return strlen(s + 1); }

int main(int argc, char **argv)
{
	(void)argv;
	for (unsigned x = 0; x < 24; x++) {
		mix(conditional(x));
		mix(indirect(x));
		mix(guarded(x));
		mix(dispatch(x % 7, x));
		mix(ping(x, 1));
		mix(choose((const unsigned[]){1, 2, 4, 6}, x));
	}
	mix(many_swapped(1, 2, 3, 4, 5, 6, 7, argc));
	mix(to_library("tail"));
	report();
	return 0;
}

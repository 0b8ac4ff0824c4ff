// Recursion as deep as the argument says: with work before, after and around the call; two calls;
// three through pointers.
#include <stdlib.h>

#include "checksum.h"

NOINLINE static unsigned down(unsigned n)
{
	if (n == 0)
		return 1;
	unsigned below = down(n - 1);
	return below & 1 ? below * 3 : below + n;
}

NOINLINE static unsigned fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

NOINLINE static unsigned ackermann(unsigned m, unsigned n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

typedef unsigned (*step)(unsigned, const void *);

NOINLINE static unsigned through_pointer(unsigned n, const void *next)
{
	if (n == 0)
		return 5;
	return ((step)next)(n - 1, next) + n % 3;
}

// An array argument in the frame, so that frames differ in size from the other routines'.
NOINLINE static unsigned with_frame(unsigned n)
{
	volatile unsigned local[9];
	for (int i = 0; i < 9; i += 4)
		local[i] = n + i;
	if (n > 1)
		local[4] += with_frame(n / 2) + with_frame(n / 3);
	return local[0] + local[4];
}

int main(int argc, char **argv)
{
	unsigned depth = argc > 1 ? atoi(argv[1]) : 100;
	mix(down(depth));
	mix(fibonacci(9));
	mix(ackermann(2, 4));
	mix(through_pointer(50, (const void *)through_pointer));
	mix(with_frame(40));
	report();
	return 1;
}

// Functions of the program's own that have names which mean something else in libraries: they
// return.
#include "checksum.h"

NOINLINE static void quick_exit(unsigned n) { mix(n * 3); }
NOINLINE static void thrd_exit(unsigned n) { mix(n ^ 9); }
NOINLINE void rust_panic(unsigned n) { mix(n + 7); }
NOINLINE void errx(unsigned n) { mix(n * n); }

NOINLINE static unsigned work(unsigned n)
{
	unsigned x = n * 5;

	if (n & 1)
		quick_exit(x);
	x += n;
	if (x & 4)
		rust_panic(x);
	if (x % 3 == 0)
		errx(x);
	if (x % 5 == 2)
		thrd_exit(x);
	return x ^ n;
}

int main(void)
{
	for (unsigned n = 0; n < 20; n++)
		mix(work(n));
	report();
	return 0;
}

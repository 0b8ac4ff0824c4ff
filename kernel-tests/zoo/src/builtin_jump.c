// Jumps that the compiler makes itself (__builtin_setjmp, __builtin_longjmp): a routine is entered
// in its middle.
#include "checksum.h"

static void *place[5];

NOINLINE static void climb(int n)
{
	mix(n);
	if (n == 0)
		__builtin_longjmp(place, 1);
	climb(n - 1);
	mix(n);
}

NOINLINE static int receive(int n)
{
	volatile int kept = n;
	if (__builtin_setjmp(place)) {
		mix(kept);
		return kept * 2;
	}
	climb(kept);
	return 1;
}

NOINLINE static int plain(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i % 3 ? i : -i;
	return sum;
}

int main(void)
{
	for (int i = 0; i < 6; i++) {
		mix(receive(i));
		mix(plain(i * 40));
	}
	report();
	return 0;
}

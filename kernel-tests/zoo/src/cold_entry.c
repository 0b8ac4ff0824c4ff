// A routine that tail jumps alone enter, with a cold part longer than the rest of it, which a jump
// at its beginning leads to.
#include "checksum.h"

__attribute__((noinline, cold)) static void rare(unsigned value) { checksum ^= value; }

__attribute__((noinline, noclone)) static void last(unsigned value) { mix(value); }

__attribute__((noinline, noclone)) static void work(unsigned value)
{
	if (value > 1000) {
		rare(value);
		rare(value + 1);
		rare(value ^ 3);
		rare(value * 5);
		rare(value + 8);
		rare(value - 9);
		rare(value / 3);
		return;
	}
	mix(value * 3);
	last(value);
}

__attribute__((noinline, noclone)) static void even(unsigned value)
{
	mix(2);
	work(value);
}

__attribute__((noinline, noclone)) static void odd(unsigned value)
{
	mix(value ^ 1);
	work(value + 1);
}

int main(void)
{
	for (unsigned i = 0; i < 12; i++)
		if (i & 1)
			odd(i * 120);
		else
			even(i);
	report();
	return 0;
}

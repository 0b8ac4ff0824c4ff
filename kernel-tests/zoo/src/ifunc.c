// An indirect function: the dynamic linker calls its resolver before the program's first
// instruction.
#include "checksum.h"

static int small_step(int x) { return x & 1 ? x + 3 : x / 2; }
UNUSED static int large_step(int x) { return x * 2; }

static int (*choose(void))(int)
{
	volatile int large = 0;
	for (int i = 0; i < 3; i++)
		large = large + i;
	if (large == 4)
		return large_step;
	return small_step;
}

int stepper(int x) __attribute__((ifunc("choose")));

static int (*volatile pointer)(int) = stepper;

int main(void)
{
	for (int x = 0; x < 30; x++)
		mix(x % 3 ? stepper(x) : pointer(x));
	report();
	return 0;
}

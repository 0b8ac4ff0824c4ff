// Inline assembly that moves the stack pointer, of which the unwind tables know nothing: past the
// red zone, and in routines that have none.
#include "checksum.h"

NOINLINE static unsigned flags(unsigned x)
{
	unsigned long f;

	__asm__ volatile("lea -128(%%rsp),%%rsp\n\ttest %1,%1\n\tpushfq\n\tpopq %0\n\tlea 128(%%rsp),%%rsp" : "=r"(f) : "r"(x) : "cc");
	if (f & 4) // parity
		x = x * 3 + 1;
	return x ^ (f & 0x44);
}

// It calls, so that it has no red zone.
NOINLINE static unsigned swap(unsigned x, unsigned y)
{
	unsigned long a = flags(x), b = flags(y);

	if (a < b)
		__asm__ volatile("push %0\n\tpush %1\n\tpop %0\n\tpop %1" : "+r"(a), "+r"(b));
	return flags(a) * 5 + b;
}

NOINLINE static unsigned saved(unsigned x)
{
	unsigned a = 0;

	for (unsigned i = 0; i < x; i++) {
		__asm__ volatile("lea -128(%%rsp),%%rsp\n\tpush %%rbx\n\tmov %1,%%ebx\n\tadd %%ebx,%0\n\tpop %%rbx\n\tlea 128(%%rsp),%%rsp" : "+a"(a) : "c"(i) : "cc");
		a ^= flags(a);
	}
	return a;
}

int main(void)
{
	for (unsigned i = 0; i < 24; i++) {
		mix(flags(i));
		mix(swap(i, 24 - i));
		mix(saved(i % 5));
	}
	report();
	return 0;
}

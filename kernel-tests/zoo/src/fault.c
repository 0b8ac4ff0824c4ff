// A SIGSEGV in the middle of a block, in the routine itself and in a callee's callee; the handler
// jumps back out of it.
#include <setjmp.h>
#include <signal.h>

#include "checksum.h"

static sigjmp_buf recover;
static volatile sig_atomic_t faults;

static void on_fault(int sig)
{
	faults = faults + 1;
	if (faults & 1)
		mix(sig);
	siglongjmp(recover, faults);
}

// A block of several loads, one of which faults when its pointer is null.
NOINLINE static int block(const volatile int *a, const volatile int *b, const volatile int *c)
{
	int x = *a;
	int y = *b * x;
	int z = *c + y;
	return x + y * z;
}

NOINLINE static int caller(const volatile int *a, const volatile int *b, const volatile int *c,
	int n)
{
	int r = 0;
	for (int i = 0; i < n; i++)
		r += block(a, i == n - 1 ? b : a, c);
	return r;
}

NOINLINE static int attempt(int which)
{
	static const int one = 1, two = 2;
	if (sigsetjmp(recover, 1) == 0) {
		int r = caller(which == 0 ? 0 : &one, which == 1 ? 0 : &two, which == 2 ? 0 : &one,
			which + 1);
		mix(r);
		return r;
	}
	mix(faults);
	return -1;
}

int main(void)
{
	signal(SIGSEGV, on_fault);
	for (int round = 0; round < 2; round++)
		for (int which = 0; which < 5; which++)
			mix(attempt(which));
	report();
	return faults;
}

// abort and __builtin_trap, caught by handlers that jump out; then _exit from a routine that is
// reached by pointer.
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

static sigjmp_buf recover;

static void on_signal(int sig)
{
	mix(sig);
	siglongjmp(recover, sig);
}

NOINLINE static int may_abort(int n)
{
	if (n == 2)
		abort();
	if (n == 4)
		__builtin_trap();
	return n + 1;
}

NOINLINE static int chain(int n, int depth)
{
	return depth ? chain(n, depth - 1) + 1 : may_abort(n);
}

__attribute__((noreturn)) static void leave(int status)
{
	report();
	fflush(stdout);
	_exit(status);
}

static void (*volatile leaving)(int) = leave;

int main(void)
{
	signal(SIGABRT, on_signal);
	signal(SIGILL, on_signal);
	for (volatile int n = 0; n < 6; n++)
		if (sigsetjmp(recover, 1) == 0)
			mix(chain(n, n));
		else
			mix(n + 500);
	leaving(250);
	mix(1); // never
	return 0;
}

// Signal handlers that raise signals as the last thing that they do, through functions that do the
// same.
#include <signal.h>

#include "checksum.h"

static void last(int sig)
{
	mix(sig);
}

NOINLINE static int jump_on(int n)
{
	mix(n);
	return raise(SIGUSR1);
}

NOINLINE static int through(int n)
{
	mix(n * 2);
	return jump_on(n + 1);
}

static void first(int sig)
{
	for (int k = 0; k < 3; k++)
		mix(k);
	if (sig == SIGUSR2)
		raise(SIGUSR1);
}

static void second(int sig)
{
	mix(sig);
	through(sig);
}

int main(void)
{
	signal(SIGUSR1, last);
	signal(SIGUSR2, first);
	signal(SIGTERM, second);
	for (int i = 0; i < 4; i++) {
		mix(i);
		raise(SIGUSR2);
		raise(SIGTERM);
		through(i);
	}
	report();
	return 5;
}

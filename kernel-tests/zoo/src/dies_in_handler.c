// Ends in a handler that has interrupted a handler that has interrupted what made no event, both of
// them left out for a breakpoint.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

static volatile int *volatile nowhere;
static volatile int parts, stops;

static void end(int number)
{
	if (stops)
		__asm__ volatile("int3");
	_exit(number);
}

static void give_up(int number)
{
	if (stops)
		__asm__ volatile("int3");
	parts += number;
	abort();
}

static void pass(int number)
{
	if (stops)
		__asm__ volatile("int3");
	parts += number;
}

NOINLINE static void fault(int n)
{
	parts += n;
	*nowhere = n;
	parts++;
}

// What handlers that have returned have left lies amid this.
NOINLINE static void finish(int n)
{
	volatile char room[6000];
	room[n] = n;
	parts += room[n];
	fault(n);
}

int main(void)
{
	signal(SIGUSR1, pass);
	signal(SIGSEGV, give_up);
	signal(SIGABRT, end);
	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		mix(parts + i);
	}
	report();
	fflush(stdout);
	finish(9);
	return 1;
}

// A call through a pointer in memory faults, and a handler with an event ends the process.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

struct operation {
	long pad;
	long (*run)(struct operation *, long);
};

static struct operation *volatile none;

NOINLINE static void count(int n)
{
	for (int i = 0; i < n; i++)
		mix(i);
}

static void on_fault(int number)
{
	count(number);
	_exit(number);
}

NOINLINE static long call(struct operation *o, long n) { return o->run(o, n) + 1; }
NOINLINE static long within(struct operation *o, long n) { return call(o, n) * 3; }

int main(void)
{
	signal(SIGSEGV, on_fault);
	count(40);
	report();
	fflush(stdout);
	return within(none, 5);
}

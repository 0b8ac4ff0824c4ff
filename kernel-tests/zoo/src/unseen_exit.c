// A function of the library faults; a handler that is left out, for a breakpoint in it, ends the
// process.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checksum.h"

static volatile int stops;

static void end(int number)
{
	if (stops)
		__asm__ volatile("int3");
	_exit(number);
}

NOINLINE static long length(const char *text) { return strlen(text) + 2; }
NOINLINE static int work(const char *text)
{
	int n = length(text);
	for (int i = 0; i < n * 100; i++)
		mix(i);
	return n;
}

int main(void)
{
	signal(SIGSEGV, end);
	mix(work("text"));
	report();
	fflush(stdout);
	return work((char *)8) + 1;
}

// A routine that is left out, for a breakpoint in it, faults; the handler ends by a jump to the
// library.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"

static char *guarded;
static long page;

NOINLINE static void count(unsigned value)
{
	for (unsigned i = 0; i < 400; i++)
		mix(value + i);
}

static int guard(int protection) { return mprotect(guarded, page, protection); }

static void on_fault(int number)
{
	count(number);
	guard(PROT_READ | PROT_WRITE);
}

NOINLINE static void write_often(int stops)
{
	for (int n = 0; n < 3; n++) {
		guard(PROT_READ);
		*(volatile char *)guarded = n;
		count(n);
	}
	if (stops)
		__asm__ volatile("int3");
}

int main(int argc, char **argv)
{
	(void)argv;
	page = sysconf(_SC_PAGESIZE);
	guarded = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction act = {.sa_handler = on_fault};
	sigaction(SIGSEGV, &act, 0);
	write_often(argc == 77);
	report();
	return 0;
}

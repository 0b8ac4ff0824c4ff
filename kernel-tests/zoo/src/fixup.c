// A SIGSEGV handler that repairs the cause and returns, so that the faulting instruction runs
// again.
#include <signal.h>
#include <sys/mman.h>

#include "checksum.h"

enum { PAGE = 4096, PAGES = 5 };

static char *pages;
static volatile sig_atomic_t repaired;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	char *where = info->si_addr;
	repaired = repaired + 1;
	mprotect(pages + (where - pages) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

NOINLINE static int touch(int offset)
{
	int before = pages[offset]; // faults at the first touch of a page
	pages[offset] = before + offset % 101;
	return before * 3 + pages[offset];
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, 0);
	pages = mmap(0, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 60; i++)
		mix(touch(i * 331 % (PAGES * PAGE)));
	mix(repaired);
	report();
	return repaired;
}

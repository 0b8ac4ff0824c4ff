// A SIGSEGV handler that repairs the cause and returns, so that the faulting instruction runs again; one that skips it.
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "checksum.h"

enum { PAGE = 4096, PAGES = 5 };

static char *pages;
static volatile sig_atomic_t repaired, skipped;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	char *where = info->si_addr;
	if (where >= pages && where < pages + PAGES * PAGE) {
		repaired = repaired + 1;
		mprotect(pages + (where - pages) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
		return;
	}
	skipped = skipped + 1;
	ucontext_t *uc = context;
	uc->uc_mcontext.gregs[REG_RIP] += 2; // the load below
	uc->uc_mcontext.gregs[REG_RAX] = 77;
}

NOINLINE static int touch(int offset)
{
	int before = pages[offset]; // faults at the first touch of a page
	pages[offset] = before + offset % 101;
	return before * 3 + pages[offset];
}

NOINLINE static long load_two_bytes(const void *where)
{
	long value;
	__asm__ volatile("mov (%1), %%eax\n\tcltq" : "=a"(value) : "r"(where), "0"(5L) : "memory");
	return value + 1;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, 0);
	pages = mmap(0, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 60; i++)
		mix(touch(i * 331 % (PAGES * PAGE)));
	for (int i = 0; i < 3; i++)
		mix(load_two_bytes((const void *)16));
	mix(repaired * 10 + skipped);
	report();
	return skipped;
}

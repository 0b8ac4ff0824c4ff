// Loops that count and run into a page that is not there: a handler jumps out of the first, and
// mends the others.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "checksum.h"

enum { PAGE = 4096 };
static unsigned char *pages;
static sigjmp_buf out;
static volatile int mends;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (!mends)
		siglongjmp(out, 1);
	mends--;
	mprotect((unsigned char *)((unsigned long)info->si_addr & -PAGE), PAGE, PROT_READ | PROT_WRITE);
}

NOINLINE static unsigned sum(const unsigned char *p, const unsigned char *end)
{
	unsigned s = 1;

	if (end == pages)
		return 3;
	do
		s = s * 3 + *p++;
	while (p != end);
	return s;
}

NOINLINE static unsigned length(const unsigned char *p)
{
	unsigned n = 0;

	if (*p == 77)
		mends = 0;
	while (p[n])
		n++;
	if (n % 3 == 1)
		n += mends;
	return n;
}

NOINLINE static void fill(unsigned char *p, int n, int value)
{
	if (value == 77)
		mends = 0;
	for (int i = 0; i < n; i++)
		p[i] = value + i % 3;
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGSEGV, &act, NULL);
	pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages, PAGE, PROT_READ | PROT_WRITE);
	fill(pages + PAGE - 60, 60, 1);
	mends = 1;
	mix(sum(pages + PAGE - 20, pages + PAGE + 10));
	fill(pages + 2 * PAGE - 40, 40, 5);
	mends = 1;
	fill(pages + 2 * PAGE - 30, 50, 3);
	mends = 1;
	mix(length(pages + 2 * PAGE - 25));
	mends = 0;
	mprotect(pages + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	if (!sigsetjmp(out, 1))
		mix(sum(pages + 3 * PAGE - 30, pages + 3 * PAGE + 10));
	fill(pages + 3 * PAGE - 33, 33, 7);
	if (!sigsetjmp(out, 1))
		mix(length(pages + 3 * PAGE - 12));
	report();
	return 0;
}

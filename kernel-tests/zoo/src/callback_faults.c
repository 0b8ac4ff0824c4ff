// What is called back faults before its first event: in a comparison, in a handler that is raised,
// behind a callback's own calls. Handlers mend it, or jump out.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"

static sigjmp_buf out;
static char *guarded;
static long page;
static volatile int mends;

static void guard(int protection) { mprotect(guarded, page, protection); }

static void on_fault(int number)
{
	mix(number);
	if (!mends)
		siglongjmp(out, 1);
	guard(PROT_READ | PROT_WRITE);
}

NOINLINE static int compare(const void *a, const void *b)
{
	return **(int *const volatile *)a - **(int *const volatile *)b;
}

NOINLINE static int compare_twice(const void *a, const void *b)
{
	int x = **(int *const volatile *)a, y = **(int *const volatile *)b;
	return x < y ? -1 : x > y;
}

static void on_raise(int number) { mix(*(volatile int *)guarded + number); }

static void sort(int (*how)(const void *, const void *))
{
	int *list[] = {(int *)(guarded - 4), (int *)(guarded - 8), (int *)guarded,
		(int *)(guarded - 12)};
	if (sigsetjmp(out, 1)) {
		mix(9);
		return;
	}
	qsort(list, 4, sizeof *list, how);
	mix(*list[0]);
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	char *area = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guarded = area + page;
	for (int i = 1; i < 9; i++)
		((int *)guarded)[-i] = i * i;
	struct sigaction act = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
	sigaction(SIGSEGV, &act, 0);
	act.sa_handler = on_raise;
	sigaction(SIGUSR1, &act, 0);
	for (mends = 0; mends < 2; mends++) {
		guard(PROT_NONE);
		sort(compare);
		guard(PROT_NONE);
		sort(compare_twice);
		guard(PROT_NONE);
		if (sigsetjmp(out, 1))
			mix(5);
		else
			raise(SIGUSR1);
	}
	report();
	return 5;
}

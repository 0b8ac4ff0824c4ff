// Calls and jumps through pointers in memory fault; a handler jumps out, or mends the memory, and
// at last there is none.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"

struct operation {
	long pad;
	long (*run)(struct operation *, long);
};

static sigjmp_buf env;
static struct operation *volatile none;
static struct operation *page;
static volatile int mends;

static void on_fault(int number)
{
	if (!mends)
		siglongjmp(env, number);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

NOINLINE static long add(struct operation *o, long n) { return n + 2 + (o == 0); }
NOINLINE static long call(struct operation *o, long n) { return o->run(o, n) + 1; }
NOINLINE static long jump(struct operation *o, long n) { return o->run(o, n); }
NOINLINE static long often(struct operation *o, long n)
{
	long sum = 0;
	do
		sum += o->run(o, n);
	while (--n);
	return sum;
}

NOINLINE static long attempt(int which, struct operation *o)
{
	if (sigsetjmp(env, 1))
		return -which;
	switch (which) {
	case 0: return call(o, 3);
	case 1: return jump(o, 4);
	}
	return often(o, 3);
}

int main(void)
{
	signal(SIGSEGV, on_fault);
	page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page->run = add;
	for (int i = 0; i < 12; i++) {
		mends = i >= 6;
		if (mends)
			mprotect(page, 4096, PROT_NONE);
		mix(attempt(i % 3, i < 3 ? none : page));
	}
	report();
	fflush(stdout);
	signal(SIGSEGV, SIG_DFL);
	return jump(none, 5);
}

// Signal handlers that throw: to landing pads of what is no call, around calls, in loops, in leaves
// called again and again, through callers, out of callbacks.
#include <csignal>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#include "checksum.h"

#pragma GCC optimize("non-call-exceptions")

struct fault {
	int signal;
};

static void throw_it(int sig)
{
	sigset_t again;
	sigemptyset(&again);
	sigaddset(&again, sig);
	sigprocmask(SIG_UNBLOCK, &again, nullptr);
	throw fault{sig};
}

NOINLINE static int peek(const volatile int *p)
{
	try {
		return *p;
	} catch (const fault &f) {
		return -f.signal;
	}
}

NOINLINE static int sum(const volatile int *p, int n)
{
	int s = 0, all = 0;
	try {
		for (int i = 0; i < n; i++)
			s += p[i];
		all = s;
	} catch (const fault &f) {
		all = f.signal;
	}
	return all * 2;
}

NOINLINE static int divide(int a, int b)
{
	try {
		return a / b;
	} catch (const fault &) {
		return a;
	}
}

NOINLINE static int raw(const volatile int *p, int n)
{
	int s = 0;
	while (n-- > 0)
		s += *p++;
	return s;
}

NOINLINE static int around_call(const volatile int *p, const volatile int *q)
{
	try {
		int first = *p;
		close(-1);
		return first + *q * q[-1];
	} catch (const fault &f) {
		return f.signal * 5;
	}
}

static const volatile int *where[4];
static int turn;

extern "C" int compare(const void *, const void *)
{
	const volatile int *p = where[turn++ & 3];
	try {
		return *p > 5 ? 1 : -1;
	} catch (const fault &f) {
		return f.signal;
	}
}

struct last_word {
	~last_word() { mix(77); }
};

NOINLINE static int through(const volatile int *p, int n)
{
	last_word w;
	return raw(p, n) + 1;
}

int main()
{
	signal(SIGSEGV, throw_it);
	signal(SIGFPE, throw_it);
	long page = sysconf(_SC_PAGESIZE);
	char *area = (char *)mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE
		| MAP_ANONYMOUS, -1, 0);
	mprotect(area + page, page, PROT_NONE);
	int *end = (int *)(area + page);
	for (int i = 1; i < 20; i++)
		end[-i] = i * i;
	mix(peek(end - 3));
	mix(peek(end));
	for (int i = -3; i < 3; i++)
		mix(peek(end + i));
	mix(sum(end - 5, 3));
	mix(sum(end - 5, 9));
	for (int b = -2; b < 3; b++)
		mix(divide(100 + b, b));
	for (int n = 4; n < 7; n++)
		try {
			mix(through(end - 5, n));
		} catch (const fault &f) {
			mix(f.signal * n);
		}
	mix(around_call(end - 1, end - 3));
	mix(around_call(end - 1, end));
	mix(around_call(end, end - 1));
	for (int i = 0; i < 4; i++) {
		int list[] = {1, 2, 3, 4};
		for (int k = 0; k < 4; k++)
			where[k] = k == i ? end : end - 1 - k;
		qsort(list, 4, sizeof *list, compare);
		mix(turn);
	}
	report();
	return 7;
}

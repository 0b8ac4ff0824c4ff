/* A library that calls the executable that calls it. */
#include "crossing.h"
#include <alloca.h>
#include <csignal>
#include <cstdlib>
#include <cstring>

volatile int lib_count;
static jmp_buf again;

__attribute__((constructor)) static void begin() { lib_count += 100; }
__attribute__((destructor)) static void end() { lib_count = 0; }

static int twice(int x) { return x % 3 ? 2 * x : x / 2; }
static int thrice(int x) { return x % 2 ? 3 * x : x + 1; }

extern "C" {
int lib_leaf(int x) { return x + 1; }

int lib_apply(callback *f, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i % 4 ? f(i) : exe_leaf(i);
	return sum;
}

int lib_throw(int x)
{
	if (x % 3 == 0)
		throw x;
	return x;
}

int lib_catch(callback *f, int x)
{
	try {
		return f(x);
	} catch (int thrown) {
		return -thrown;
	}
}

struct counted {
	~counted() { lib_count++; }
};

int lib_through(callback *f, int x)
{
	counted c;
	return f(x) + f(x + 1);
}

int lib_tail_pointer(callback *f, int x) { return f(x + 1); }
int lib_tail_call(int x) { return x & 1 ? exe_leaf(x) : lib_leaf(x); }
int lib_ping(int n) { return n <= 0 ? 0 : 1 + exe_pong(n - 1); }

int lib_sort(int *list, int n, int (*compare)(const void *, const void *))
{
	qsort(list, n, sizeof(*list), compare);
	return list[0];
}

static callback *choose() { return getenv("NO_SUCH_VARIABLE") ? twice : thrice; }
int lib_chosen(int x) __attribute__((ifunc("resolve_chosen")));
static callback *resolve_chosen() { return thrice; }

int lib_alloca(callback *f, int n)
{
	char *room = (char *)alloca(16 * n + 16);
	memset(room, n, 16 * n + 16);
	return choose()(f(n)) + room[n] + f(n + 1);
}

int lib_setjmp(callback *f, int x)
{
	int n = setjmp(again);
	return n ? n : f(x);
}

void lib_longjmp(jmp_buf where, int x) { longjmp(where ? where : again, x); }
void lib_handler(int sig) { lib_count += exe_leaf(sig); }

int lib_raise(int times)
{
	for (int i = 0; i < times; i++)
		raise(i % 2 ? SIGUSR1 : SIGUSR2);
	return times;
}

void *lib_thread(void *count)
{
	int sum = 0;
	for (int i = 0; i < *(int *)count; i++)
		sum += lib_tail_pointer(exe_leaf, i) + exe_pong(i % 3);
	*(int *)count = sum;
	return count;
}
}

// An executable and its library call each other in every way that there is; a plugin comes and
// goes.
#include "crossing.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

static jmp_buf home;
static volatile int handled;

extern "C" {
int exe_leaf(int x) { return x % 5 ? x + 2 : x - 1; }
int exe_pong(int n) { return n <= 0 ? 0 : 1 + lib_ping(n - 1); }
}

static int square(int x) { return x * x; }
static int thrower(int x) { return lib_throw(x) + 1; }
static int nested(int x) { return lib_catch(thrower, x) + lib_through(square, x); }
static int back(int x) { return x % 2 ? lib_tail_call(x) : x; }
static int leaper(int x)
{
	if (x % 2)
		lib_longjmp(home, x);
	return x;
}
static int returner(int x)
{
	if (x % 3 == 1)
		lib_longjmp(nullptr, x);
	return x;
}
static int compare(const void *a, const void *b)
{
	return exe_leaf(*(const int *)a) - lib_leaf(*(const int *)b);
}
static void handler(int sig) { handled += lib_tail_pointer(square, sig); }

/* Its first jump binds the function, which has the library choose it: that comes in between. */
__attribute__((noinline)) static int chosen(int x) { return lib_chosen(x); }

static int exceptions(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		sum += nested(i);
		try {
			sum += lib_through(thrower, i);
		} catch (int x) {
			sum += 1000 + x;
		}
	}
	return sum;
}

static int jumps(int n)
{
	volatile int sum = 0;
	for (volatile int i = 0; i < n; i++) {
		int x = setjmp(home);
		sum += x ? 100 * x : lib_apply(leaper, i);
		sum += lib_setjmp(returner, i);
	}
	return sum;
}

static int plugins(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		void *handle = dlopen("libcrossing_plugin.so", RTLD_NOW);
		if (!handle)
			return printf("%s\n", dlerror()), -1;
		callback *run = (callback *)dlsym(handle, "plugin_run");
		sum += run(i + 2);
		if (i % 2)
			dlclose(handle);
		else
			sum += lib_apply(run, 3), dlclose(handle);
	}
	return sum;
}

int main()
{
	int list[] = {5, 3, 9, 1, 7, 2};
	int count = 40;
	pthread_t thread;

	printf("%d\n", lib_apply(square, 30) + lib_apply(back, 20) + lib_leaf(lib_count));
	printf("%d\n", exceptions(12));
	printf("%d\n", jumps(8));
	printf("%d %d\n", lib_ping(21), exe_pong(8));
	printf("%d\n", lib_sort(list, 6, compare));
	printf("%d\n", chosen(4) + lib_chosen(7) + lib_alloca(square, 3) + lib_alloca(back, 5));
	for (int i = 0; i < 10; i++)
		count += lib_tail_call(i) + lib_tail_pointer(i % 2 ? lib_leaf : square, i);
	signal(SIGUSR1, handler);
	signal(SIGUSR2, lib_handler);
	printf("%d\n", lib_raise(4) + count);
	count = 40;
	pthread_create(&thread, nullptr, lib_thread, &count);
	pthread_join(thread, nullptr);
	printf("%d\n", count + plugins(3));
	return handled & 1;
}

/* A library that is opened while the program runs, and closed. */
#include "crossing.h"

static int level;

__attribute__((constructor)) static void begin() { level = lib_leaf(3); }
__attribute__((destructor)) static void end() { lib_count += exe_leaf(level); }

static int step(int x) { return x % 2 ? lib_leaf(x) : exe_leaf(x); }

extern "C" int plugin_run(int n)
{
	int sum = level;
	for (int i = 0; i < n; i++)
		sum += lib_apply(step, i) + lib_catch(lib_throw, i);
	return sum;
}

// Constructors and destructors with priorities, code that runs before main and after it, from
// _start on.
#include <stdlib.h>

#include "checksum.h"

static int order[8], count;

NOINLINE static void note(int id)
{
	order[count++] = id;
	if (id & 1)
		mix(id);
}

__attribute__((constructor(200))) static void second(void) { note(2); }
__attribute__((constructor(101))) static void first(void) { note(1); }
__attribute__((constructor)) static void third(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < argc + 2; i++)
		mix(i);
	note(3);
}

static void before_everything(int argc, char **argv, char **environment)
{
	(void)argv;
	(void)environment;
	if (argc > 0)
		note(7);
}
__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int, char **, char **) = before_everything;

__attribute__((destructor(101))) static void very_last(void)
{
	note(5);
	report();
}
__attribute__((destructor)) static void last_but_one(void)
{
	if (count > 3)
		note(4);
	for (int i = 0; i < count; i++)
		mix(order[i]);
}

int main(void)
{
	note(6);
	return count;
}

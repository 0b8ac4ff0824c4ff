// Works in one routine and, after an exec at SIGUSR1, in another one.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static void ask(int s) { asked = 1; }
static volatile unsigned sink;

__attribute__((noinline)) void first(void)
{
	while (!asked)
		sink++;
}

__attribute__((noinline)) void second(void)
{
	for (;;)
		sink++;
}

int main(int argc, char **argv)
{
	alarm(120);
	signal(SIGUSR1, ask);
	puts("begun");
	fflush(stdout);
	if (argc > 1)
		second();
	first();
	execl("/proc/self/exe", argv[0], "again", (char *)0);
	return 1;
}

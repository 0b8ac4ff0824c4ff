// vfork: the child runs traced code on the parent's stack, then exits or becomes another program.
#define _DEFAULT_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "checksum.h"

NOINLINE static int work(int n)
{
	int r = 1;
	while (n > 0) {
		r += n & 1 ? r : n;
		n--;
	}
	return r & 31;
}

NOINLINE static int child_exits(volatile int n)
{
	int status;
	pid_t child = vfork();
	if (child == 0)
		_exit(n % 2 ? work(n) : n);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status) + work(3);
}

NOINLINE static int child_execs(const char *program)
{
	int status;
	pid_t child = vfork();
	if (child == 0) {
		execl(program, program, (char *)0);
		_exit(work(4) + 1);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

int main(void)
{
	for (int n = 1; n < 5; n++) // the first child's status, too, is none of a child that has died
		mix(child_exits(n));
	mix(child_execs("/bin/true"));
	mix(child_execs("/bin/false"));
	mix(child_execs("/nonexistent/program") > 0);
	report();
	return 0;
}

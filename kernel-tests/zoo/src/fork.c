// fork with a child that runs traced code, forks again and exits with a status; a child that a
// signal ends; posix_spawn.
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checksum.h"

extern char **environ;

NOINLINE static int work(int n)
{
	int r = 0;
	for (int i = 0; i < n; i++)
		r = r % 3 ? r + i : r * 2 + 1;
	return r & 63;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

NOINLINE static int sorted_middle(int n)
{
	int values[] = {n, 3, 9, 1, 5};
	qsort(values, 5, sizeof *values, ascending);
	return values[2];
}

NOINLINE static int status_of(pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

NOINLINE static int in_child(int n)
{
	pid_t child = fork();
	if (child == 0) {
		if (n == 2) {
			pid_t grandchild = fork();
			if (grandchild == 0)
				_exit(work(5));
			_exit(status_of(grandchild) + sorted_middle(4));
		}
		if (n == 3)
			raise(SIGKILL);
		_exit(work(n * 3) + sorted_middle(n));
	}
	mix(work(n));
	return status_of(child);
}

int main(void)
{
	for (int n = 0; n < 4; n++)
		mix(in_child(n));
	pid_t spawned;
	char *const arguments[] = {"true", 0};
	if (posix_spawn(&spawned, "/bin/true", 0, 0, arguments, environ) == 0)
		mix(status_of(spawned));
	mix(work(9));
	report();
	return 0;
}

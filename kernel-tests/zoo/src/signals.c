// Raised signals: handlers on the same and on an alternate stack, nested, through kill, blocked and
// then released.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

static char alternate[64 << 10] __attribute__((aligned(16)));
static volatile sig_atomic_t level;

NOINLINE static int work(int n)
{
	int r = 0;
	for (int i = 0; i < n; i++)
		r += i & 1 ? i : -2 * i;
	return r;
}

static void simple(int sig)
{
	mix(sig);
	mix(work(5));
}

static void nested(int sig)
{
	level = level + 1;
	mix(sig * 10 + level);
	if (level < 4)
		raise(level & 1 ? SIGUSR2 : SIGUSR1);
	mix(work(level));
	level = level - 1;
}

static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void sorting(int sig, siginfo_t *info, void *context)
{
	(void)context;
	int values[] = {4, 2, sig, 1};
	qsort(values, 4, sizeof *values, ascending);
	mix(values[0] + values[3] + info->si_signo);
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigaction(sig, &action, 0);
}

NOINLINE static void raise_all(int round)
{
	raise(SIGUSR1);
	if (round & 1)
		kill(getpid(), SIGUSR2);
	raise(SIGWINCH);
	mix(work(round));
}

int main(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
	sigaltstack(&stack, 0);
	struct sigaction action = {.sa_sigaction = sorting, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaction(SIGWINCH, &action, 0);
	handle(SIGUSR1, simple, 0);
	handle(SIGUSR2, simple, SA_ONSTACK);
	for (int round = 0; round < 4; round++)
		raise_all(round);
	handle(SIGUSR1, nested, SA_NODEFER);
	handle(SIGUSR2, nested, SA_NODEFER | SA_ONSTACK);
	raise_all(1);

	sigset_t blocked, before;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGWINCH);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	raise(SIGWINCH);
	mix(work(3));
	sigprocmask(SIG_SETMASK, &before, 0);
	raise(SIGCHLD); // ignored
	report();
	return 0;
}

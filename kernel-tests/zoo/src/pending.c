// Signals that are delivered at once: their handlers run the last first, each as if it had
// interrupted the one before at its first instruction.
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "checksum.h"

NOINLINE static void leaf(unsigned k)
{
	if (k & 1)
		checksum += k;
	else
		checksum ^= k * 3;
}

static void handler(int sig)
{
	leaf(checksum);
	if (checksum % 3 == 0)
		leaf(4);
	leaf(sig);
}

static void other(int sig)
{
	for (int i = 0; i < sig % 4; i++)
		leaf(checksum + i);
}

static char stack[1 << 16];

NOINLINE static void pend(int flags, int otherFlags, int n)
{
	struct sigaction action;
	sigset_t mask;
	union sigval value = {0};

	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(SIGRTMIN, &action, 0);
	sigaction(SIGRTMIN + 2, &action, 0);
	action.sa_handler = other;
	action.sa_flags = otherFlags;
	sigaction(SIGRTMIN + 1, &action, 0);
	sigemptyset(&mask);
	for (int i = 0; i < 3; i++)
		sigaddset(&mask, SIGRTMIN + i);
	sigprocmask(SIG_BLOCK, &mask, 0);
	for (int i = 0; i < n; i++)
		sigqueue(getpid(), SIGRTMIN + i % 3, value);
	sigprocmask(SIG_UNBLOCK, &mask, 0);
	leaf(1);
}

int main(void)
{
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};

	sigaltstack(&alternate, 0);
	for (int n = 1; n < 6; n++) {
		pend(0, 0, n);
		pend(SA_NODEFER, 0, n);
		pend(SA_NODEFER, SA_NODEFER, n);
		pend(SA_NODEFER, SA_NODEFER | SA_ONSTACK, n);
		pend(SA_NODEFER | SA_ONSTACK, SA_NODEFER, n);
		pend(SA_ONSTACK, SA_ONSTACK, n);
	}
	report();
	return 3;
}

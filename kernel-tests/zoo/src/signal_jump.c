// Handlers of raised signals that jump out: on the same and on an alternate stack, over frames, out
// of nested handlers.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>

#include "checksum.h"

static char alternate[64 << 10] __attribute__((aligned(16)));
static sigjmp_buf outer, inner;
static volatile sig_atomic_t count;

NOINLINE static int work(int n)
{
	int r = 1;
	while (n-- > 0)
		r = r % 2 ? r * 3 + n : r / 2;
	return r;
}

static void jump_out(int sig)
{
	mix(sig + work(4));
	count = count + 1;
	siglongjmp(outer, count);
}

static void jump_from_nested(int sig)
{
	mix(sig);
	if (sigsetjmp(inner, 1) == 0)
		raise(SIGUSR1); // jumps to outer
	mix(1000);
}

static void jump_inside(int sig)
{
	volatile int tries = 0;
	if (sigsetjmp(inner, 0) < 3) {
		tries = tries + 1;
		mix(sig + tries);
		siglongjmp(inner, tries);
	}
	mix(tries);
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigaction(sig, &action, 0);
}

NOINLINE static int deep(int n, int sig)
{
	if (n == 0)
		return raise(sig);
	return deep(n - 1, sig) + 1;
}

NOINLINE static void attempt(int n, int sig)
{
	if (sigsetjmp(outer, 1) == 0)
		mix(deep(n, sig) + 70);
	else
		mix(count);
}

int main(void)
{
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
	sigaltstack(&stack, 0);
	handle(SIGHUP, jump_from_nested, 0);
	handle(SIGWINCH, jump_inside, 0);
	for (int round = 0; round < 4; round++) {
		handle(SIGUSR1, jump_out, round & 1 ? SA_ONSTACK : 0);
		attempt(round, SIGUSR1);
		attempt(round, SIGWINCH);
		attempt(1, SIGHUP);
	}
	report();
	return count;
}

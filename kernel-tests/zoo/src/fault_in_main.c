// Handlers of raised signals nest and return; then a division in main faults, which no probe is
// near. Its handler makes up for it and returns.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "checksum.h"

static volatile int depth, divisor;
static sigjmp_buf out;

static void nested(int number)
{
	mix(number + depth);
	if (depth++ < 3)
		raise(SIGUSR1);
	mix(--depth);
}

static void divided(int number)
{
	mix(number);
	if (depth == 0)
		siglongjmp(out, 1);
}

int main(int argc, char **argv)
{
	(void)argv;
	struct sigaction act = {.sa_handler = nested, .sa_flags = SA_NODEFER};
	sigaction(SIGUSR1, &act, 0);
	act.sa_handler = divided;
	sigaction(SIGFPE, &act, 0);
	for (int round = 0; round < 3; round++) {
		raise(SIGUSR1);
		divisor = round - 1;
		if (sigsetjmp(out, 1)) {
			mix(17);
			continue;
		}
		mix(100 * argc / divisor);
	}
	report();
	return 6;
}

// A thread overflows its stack; the handler of the fault runs on another stack and jumps out over
// all activations.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "checksum.h"

enum { STACK = 128 << 10, FRAME = 3000, TIMES = 3 };

static sigjmp_buf top;
static char other_stack[64 << 10];

static void on_fault(int sig) { siglongjmp(top, sig); }

// The store, at the low end of the frame, is the first to touch a new page. Its place varies, so
// that the frame stays large.
NOINLINE static int dive(int n)
{
	volatile char frame[FRAME];
	frame[n & 1] = (char)n;
	return dive(n + 1) + frame[0];
}

static void *overflow(void *unused)
{
	stack_t other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
	sigaltstack(&other, 0);
	for (volatile int i = 0; i < TIMES; i = i + 1) {
		int sig = sigsetjmp(top, 1);
		mix(sig == 0 ? dive(0) : sig + i);
	}
	return unused;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
	sigaction(SIGSEGV, &action, 0);
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_t thread;
	pthread_create(&thread, &attributes, overflow, 0);
	pthread_join(thread, 0);
	report();
	return 3;
}

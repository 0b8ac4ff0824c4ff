// makecontext and swapcontext: ping-pong, generators, three that switch to one another, one that
// ends through uc_link.
#include <stdlib.h>
#include <ucontext.h>

#include "checksum.h"

enum { STACK = 32 << 10 };

static ucontext_t main_context, contexts[3];
static char static_stack[STACK] __attribute__((aligned(16)));
static int yielded;

NOINLINE static void yield(int value)
{
	yielded = value;
	swapcontext(&contexts[0], &main_context);
}

NOINLINE static void walk(int n)
{
	if (n == 0)
		return;
	walk(n / 2);
	yield(n);
	if (n > 2)
		walk(n - 2);
}

static void generator(void)
{
	walk(6);
	yielded = -1; // and ends through uc_link
}

// Leaves by a tail jump, at every level of optimisation.
int hop(ucontext_t *from, const ucontext_t *to);
__asm__(".text\n.type hop, @function\nhop: .cfi_startproc\njmp swapcontext@PLT\n.cfi_endproc\n.size hop, .-hop\n");

NOINLINE static void hopper(int n)
{
	if (n == 0)
		return;
	hopper(n / 2);
	yielded = n;
	hop(&contexts[0], &main_context);
	if (n > 2)
		hopper(n - 2);
}

static void hopping_generator(void)
{
	hopper(6);
	yielded = -1;
}

static void prepare(ucontext_t *context, char *stack, void (*routine)(void))
{
	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK;
	context->uc_link = &main_context;
	makecontext(context, routine, 0);
}

static void drain(char *stack, void (*from)(void))
{
	prepare(&contexts[0], stack, from);
	for (;;) {
		swapcontext(&main_context, &contexts[0]);
		if (yielded < 0)
			break;
		mix(yielded);
	}
}

static int turns;

NOINLINE static void ring_step(int self, int local)
{
	mix(self * 100 + local);
	if (turns++ > 14)
		swapcontext(&contexts[self], &main_context);
	swapcontext(&contexts[self], &contexts[(self + 1 + local % 2) % 3]);
}

static void ring_member(int self)
{
	for (int local = 0;; local++)
		ring_step(self, local);
}

static void member0(void) { ring_member(0); }
static void member1(void) { ring_member(1); }
static void member2(void) { ring_member(2); }

static int switching_compare(const void *a, const void *b)
{
	yield(50);
	return *(const int *)a - *(const int *)b;
}

// A switch from inside a library's callback.
static void sorter(void)
{
	int values[] = {3, 1, 2};
	qsort(values, 3, sizeof *values, switching_compare);
	mix(values[0] * 10 + values[2]);
	yielded = -1;
}

int main(void)
{
	char *stacks[3];
	for (int i = 0; i < 3; i++)
		stacks[i] = malloc(STACK);
	drain(static_stack, generator);
	drain(stacks[0], generator);
	drain(stacks[0], hopping_generator);
	prepare(&contexts[0], stacks[0], member0);
	prepare(&contexts[1], stacks[1], member1);
	prepare(&contexts[2], static_stack, member2);
	swapcontext(&main_context, &contexts[1]);
	prepare(&contexts[0], stacks[2], sorter);
	do
		swapcontext(&main_context, &contexts[0]);
	while (yielded >= 0);
	report();
	return 0;
}

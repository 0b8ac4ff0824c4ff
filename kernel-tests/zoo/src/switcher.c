// A hand-written stack switch in assembly, as coroutine libraries and runtimes have it.
#include <stdlib.h>

#include "checksum.h"

// Saves the callee-saved registers on this stack, stores rsp, and continues on another.
void switch_stack(void **save, void *load);
__asm__(".text\n"
	".globl switch_stack\n"
	".type switch_stack, @function\n"
	"switch_stack:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	.cfi_adjust_cfa_offset 48\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	.cfi_adjust_cfa_offset -48\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size switch_stack, .-switch_stack\n");

enum { STACK = 16 << 10, FIBRES = 3 };

static void *scheduler, *fibres[FIBRES];
static int current, alive;

NOINLINE static void suspend(void) { switch_stack(&fibres[current], scheduler); }

NOINLINE static int count_down(int n)
{
	mix(current * 10 + n);
	if (n % 2)
		suspend();
	if (n == 0)
		return 0;
	return count_down(n - 1) + 1;
}

static void body(void)
{
	int me = current;
	for (int i = 0; i < 3; i++) {
		mix(count_down(me + i));
		suspend();
	}
	alive &= ~(1 << me);
	for (;;)
		suspend();
}

static void *new_fibre(char *stack)
{
	void **top = (void **)(stack + STACK);
	*--top = 0;	    // where body would return to
	*--top = (void *)body;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	return top;
}

int main(void)
{
	for (int i = 0; i < FIBRES; i++)
		fibres[i] = new_fibre(aligned_alloc(16, STACK));
	alive = (1 << FIBRES) - 1;
	while (alive)
		for (current = 0; current < FIBRES; current++)
			if (alive >> current & 1)
				switch_stack(&scheduler, fibres[current]);
	report();
	return 0;
}

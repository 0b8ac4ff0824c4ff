// setjmp that returns many times: as a loop, from a callee, nested in two frames, with a switch on
// its value.
#include <setjmp.h>

#include "checksum.h"

static jmp_buf loop_point, outer_point, inner_point;

NOINLINE static void back(jmp_buf where, int code) { longjmp(where, code); }

// The jump is the loop: no back edge in the graph.
NOINLINE static int count(int n)
{
	volatile int i = 0;
	setjmp(loop_point);
	i = i + 1;
	if (i < n)
		back(loop_point, i);
	return i;
}

NOINLINE static int state_machine(void)
{
	volatile int trace = 1;
	switch (setjmp(inner_point)) {
	case 0: trace = trace * 2; back(inner_point, 1); break;
	case 1: trace = trace * 3; back(inner_point, 3); break;
	case 2: trace = trace * 5; back(inner_point, 4); break;
	case 3: trace = trace * 7; back(inner_point, 2); break;
	case 4: trace = trace * 11; break;
	}
	return trace;
}

NOINLINE static void inner(int n)
{
	volatile int tries = 0;
	if (setjmp(inner_point) < 2) {
		tries = tries + 1;
		mix(tries);
		if (n % 2)
			back(inner_point, tries);
		if (n == 2)
			back(outer_point, n);
	}
	mix(tries + 50);
}

NOINLINE static void outer(void)
{
	volatile int n = 0;
	int code = setjmp(outer_point);
	mix(code);
	if (code == 2)
		n = n + 1;
	for (; n < 6; n = n + 1) {
		inner(n);
		if (n == 4) {
			n = 5;
			back(outer_point, 9);
		}
		if (n > 2 && n % 2 == 0)
			continue;
	}
}

NOINLINE static int buffered_in_loop(int n)
{
	volatile int sum = 0;
	for (volatile int i = 0; i < n; i = i + 1) {
		jmp_buf here;
		if (setjmp(here) == 0) {
			sum = sum + i;
			if (i % 3 == 1)
				back(here, 1);
		} else
			sum = sum * 2;
	}
	return sum;
}

int main(void)
{
	mix(count(1));
	mix(count(12));
	mix(state_machine());
	outer();
	mix(buffered_in_loop(9));
	report();
	return 0;
}

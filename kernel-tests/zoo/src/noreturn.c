// Routines that never return: an error exit in a deep callee, through a pointer, and after a call
// that always jumps.
#include <setjmp.h>
#include <stdlib.h>

#include "checksum.h"

static jmp_buf retry;

__attribute__((noreturn, noinline)) static void fail(int code)
{
	mix(code);
	longjmp(retry, code);
}

__attribute__((noreturn, noinline)) static void finish(int code)
{
	mix(code);
	report();
	exit(code);
}

// Nothing says that it never returns; the compiler may find out.
NOINLINE static void always_fails(int n)
{
	if (n & 1)
		fail(n);
	fail(n + 100);
}

NOINLINE static int checked(int n)
{
	if (n > 5)
		always_fails(n);
	if (n == 3)
		fail(33);
	return n * 2;
}

static void (*volatile ending)(int) = finish;

NOINLINE static int descend(int n)
{
	if (n == 0)
		ending(21);
	return descend(n - 1) * 2 + n;
}

NOINLINE static int assert_positive(int n)
{
	if (n < 0)
		__builtin_trap();
	return n;
}

int main(void)
{
	for (volatile int n = 0; n < 10; n++) {
		int code = setjmp(retry);
		if (code == 0)
			mix(checked(assert_positive(n)));
		else
			mix(code ^ 5);
	}
	return descend(6);
}

// alloca and variable arrays: in loops, with calls in between, in recursion, before the first
// decision of a routine.
#include <alloca.h>
#include <string.h>

#include "checksum.h"

NOINLINE static int fill(char *p, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += p[i] = (char)(i * 7 + n);
	return sum;
}

NOINLINE static int silent(char *p) { return p[0] + p[1]; }

NOINLINE static int in_loop(int n)
{
	int sum = 0;
	for (int i = 2; i < n; i++) {
		char *p = alloca(i * 8);
		sum += fill(p, i);
		if (sum % 3 == 0)
			sum += silent(p);
	}
	return sum;
}

NOINLINE static int variable_array(int n)
{
	int sum = 0;
	for (int i = 1; i < n; i++) {
		int values[i];
		for (int k = 0; k < i; k++)
			values[k] = k * i;
		sum += values[i - 1];
		if (i % 4 == 3)
			continue;
		mix(sum);
	}
	return sum;
}

// The frame grows before anything is decided.
NOINLINE static int at_once(int n)
{
	char *p = alloca(n * 16 + 2);
	memset(p, n, n * 16 + 2);
	int sum = silent(p);
	if (sum > 20)
		sum += fill(p, 4);
	return sum;
}

NOINLINE static int recursive(int n)
{
	char local[n + 2];
	local[n] = (char)n;
	if (n < 2)
		return local[n];
	return recursive(n - 1) + recursive(n / 2) + fill(local, 2);
}

// 32-byte alignment makes the compiler realign the frame.
NOINLINE static int aligned(int n)
{
	_Alignas(64) char buffer[64];
	char *p = alloca(n + 2);
	return fill(buffer, 8) + fill(p, n) + ((unsigned long)buffer % 64 == 0);
}

int main(void)
{
	mix(in_loop(12));
	mix(variable_array(14));
	for (int n = 1; n < 6; n++) {
		mix(at_once(n * 3));
		mix(recursive(n));
		mix(aligned(n * 2));
	}
	report();
	return 0;
}

// Code split into hot and cold parts: unlikely branches, cold callees, cold parts that come back
// and that do not.
#include <stdlib.h>

#include "checksum.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

__attribute__((cold, noinline)) static void complain(int n)
{
	mix(n * 31);
	if (n % 2)
		mix(7);
}

__attribute__((cold, noinline)) static int repair(int n)
{
	for (int i = 0; i < 3; i++)
		mix(n + i);
	return n / 2;
}

NOINLINE static int process(int n)
{
	if (unlikely(n % 17 == 0)) {
		complain(n);
		n += 3;
	}
	int r = n * 2;
	if (unlikely(n % 23 == 0)) {
		r = repair(n);
		if (r > 20)
			complain(r);
		else
			return -1;
	}
	if (unlikely(r < 0))
		abort();
	return r + 1;
}

NOINLINE static int loop_with_cold_body(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		if (unlikely(i % 19 == 18)) {
			complain(i);
			if (i > 40)
				continue;
			sum ^= repair(sum & 63);
		}
		sum += i;
	}
	return sum;
}

__attribute__((hot, noinline)) static int hot(int n)
{
	if (unlikely(n == 13)) {
		complain(n);
		report();
		exit(13);
	}
	return n + 1;
}

int main(void)
{
	for (int n = 1; n < 100; n++)
		mix(process(n));
	mix(loop_with_cold_body(70));
	int n = 0;
	for (;;)
		mix(n = hot(n));
}

// Catches exceptions amid a loop, and goes on.
#include <cstdio>

__attribute__((noinline)) long odd(long n)
{
	if (n % 7 == 3)
		throw n;
	return n * 2;
}

int main()
{
	long sum = 0;
	for (long i = 0; i < 100; i++) {
		try {
			sum += odd(i);
		} catch (long n) {
			sum -= n;
		}
		sum ^= i;
	}
	printf("%ld\n", sum);
	return 0;
}

// One exception handler used many times, with work before and after the throw that differs each
// time.
#include "checksum.h"

struct failure {
	int code;
};

NOINLINE static int risky(int n)
{
	int r = n * 3;
	while (r > 20)
		r -= 7;
	if (n % 2)
		throw failure{r};
	return r;
}

NOINLINE static int attempt(int n)
{
	int before = n & 3 ? n : -n;
	try {
		return risky(n) + before;
	} catch (const failure &f) {
		if (f.code > 10)
			return f.code * 2;
		return before - f.code;
	}
}

// The handler leaves by continue, break and return.
NOINLINE static int leaves(int limit)
{
	int total = 0;
	for (int n = 0; n < 20; n++) {
		try {
			total += risky(n);
			continue;
		} catch (failure &f) {
			total ^= f.code;
			if (n > limit)
				return total + 1000;
		}
		if (total > 60)
			break;
	}
	return total;
}

int main()
{
	for (int n = 0; n < 8; n++)
		mix(attempt(n));
	mix(leaves(1));
	mix(leaves(30));
	report();
	return 0;
}

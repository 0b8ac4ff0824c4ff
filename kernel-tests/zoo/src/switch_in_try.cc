// Switches in loops whose exceptions all come out of their cases, and lead back to them.
#include <stdexcept>

#include "checksum.h"

struct failure {
	int code;
};

static int global;

NOINLINE static int may_fail(int k)
{
	switch (k) {
	case 0: return 1;
	case 3: throw failure{k};
	case 5: throw std::runtime_error("five");
	}
	return k * 2;
}

NOINLINE static int caught(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		try {
			switch (i % 8u) {
			case 0: sum += 1; break;
			case 1: sum += may_fail(i) * 3; break;
			case 2: sum ^= may_fail(global); break;
			case 3: throw failure{n};
			case 4: sum -= may_fail(i % 6); break;
			case 5: sum *= may_fail(2); break;
			case 6: sum += 11; global++; break;
			}
		} catch (const failure &f) {
			sum += 1000 + f.code;
		} catch (const std::exception &e) {
			sum ^= e.what()[0];
		}
	return sum;
}

// The second switch is come to from the handler of the first alone.
NOINLINE static int in_turns(int n)
{
	int sum = n, state = 0;
	while (n-- > 0)
		try {
			switch (state++ % 6) {
			case 0: sum += may_fail(n % 7); break;
			case 1: sum ^= 77; break;
			case 2: sum *= 3; break;
			case 3: sum -= may_fail(3); break;
			case 4: sum += may_fail(state); break;
			case 5: throw failure{sum & 7};
			}
		} catch (const failure &f) {
			switch (f.code) {
			case 0: sum += 4; break;
			case 1: sum ^= may_fail(1); break;
			case 2: sum *= 5; break;
			case 3: sum -= 9; continue;
			case 4: state = 2; break;
			case 5: sum += may_fail(4); break;
			case 6: return sum;
			}
		} catch (const std::exception &) {
			sum = ~sum;
		}
	return sum;
}

int main()
{
	for (int n = 3; n < 14; n += 8) {
		mix(caught(n));
		mix(in_turns(n));
	}
	report();
	return 9;
}

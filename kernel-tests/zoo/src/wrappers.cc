// More callers in a row than a hit follows decide nothing: 150 wrappers, which an exception leaves;
// and recursion by a tail jump behind the only decision.
#include "checksum.h"

static unsigned fuel;

NOINLINE static unsigned note(unsigned x) { mix(x); return x * 7; }

template <int N> struct Wrapper {
	NOINLINE static unsigned call(unsigned x) { return Wrapper<N - 1>::call(x + 1) * 3 + N; }
};

template <> struct Wrapper<0> {
	NOINLINE static unsigned call(unsigned x) {
		if (x % 3 == 0)
			throw x;
		return x & 1 ? note(x) : x;
	}
};

NOINLINE static unsigned outer(unsigned x);

NOINLINE static unsigned turns(unsigned x) {
	unsigned sum = note(x) + x;
	if (fuel == 0)
		return sum;
	fuel--;
	return outer(sum); // a tail jump, when optimized
}

NOINLINE static unsigned inner(unsigned x) { return turns(x + 1) ^ 5; }

NOINLINE static unsigned outer(unsigned x) {
	unsigned sum = inner(x);
	return sum % 5 == 0 ? sum + note(sum) : sum + 1;
}

int main() {
	for (unsigned i = 0; i < 7; i++) {
		try {
			mix(Wrapper<150>::call(i));
		} catch (unsigned x) {
			mix(x);
		}
		fuel = 30 * i;
		mix(outer(i));
	}
	report();
	return 5;
}

// Exceptions thrown through callbacks: out of qsort, std::sort, std::for_each and std::function,
// and caught inside one.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include "checksum.h"

static int budget;

NOINLINE static void spend(int n)
{
	if (--budget < 0)
		throw n;
}

static int compare(const void *a, const void *b)
{
	spend(3);
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static int safe_compare(const void *a, const void *b)
{
	try {
		return compare(a, b);
	} catch (int) {
		budget = 4;
		return -1;
	}
}

template <typename Run> NOINLINE static void attempt(int allowed, Run run)
{
	budget = allowed;
	try {
		mix(run());
	} catch (int code) {
		mix(code * 100 + allowed);
	}
}

int main()
{
	int values[] = {4, 2, 9, 7, 1};
	for (int allowed = 3; allowed < 60; allowed += 50) {
		attempt(allowed, [&] {
			int copy[5];
			std::copy(values, values + 5, copy);
			qsort(copy, 5, sizeof *copy, compare);
			return copy[1];
		});
		attempt(allowed, [&] {
			int copy[5];
			std::copy(values, values + 5, copy);
			std::sort(copy, copy + 5, [](int a, int b) {
				spend(4);
				return a < b;
			});
			return copy[4];
		});
		attempt(allowed, [&] {
			int sum = 0;
			std::for_each(values, values + 5, [&](int v) {
				spend(5);
				sum += v & 1 ? v : 2 * v;
			});
			return sum;
		});
	}
	std::function<int(int)> function = [&](int n) {
		if (n > 2)
			spend(6);
		return n + values[n % 5];
	};
	attempt(1, [&] { return function(1) + function(3) + function(5); });
	attempt(3, [&] {
		int copy[] = {3, 2, 1};
		qsort(copy, 3, sizeof *copy, safe_compare);
		return copy[0];
	});
	report();
	return 0;
}

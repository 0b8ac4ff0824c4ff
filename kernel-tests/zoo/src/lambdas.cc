// Lambdas, inlined and not: captured state, recursion through std::function, algorithms, heap and
// function objects.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "checksum.h"

template <typename F> static int apply(int n, F f)
{
	int r = 0;
	for (int i = 0; i < n; i++)
		r += f(i);
	return r;
}

template <typename F> NOINLINE static int apply_out_of_line(int n, F f)
{
	int r = 1;
	while (n-- > 0)
		r ^= f(n) << (n % 4);
	return r;
}

struct accumulator {
	int total = 0;
	int operator()(int x) { return total += x % 3 ? x : -x; }
};

NOINLINE static std::function<int(int)> compose(std::function<int(int)> f,
	std::function<int(int)> g)
{
	return [f, g](int x) { return g(f(x)); };
}

int main()
{
	int calls = 0;
	mix(apply(10, [&](int i) { return ++calls + i; }));
	mix(apply(8, [calls](int i) { return i & 2 ? calls : i; }));
	mix(apply_out_of_line(9, [&calls](int i) { return calls -= i; }));
	mix(apply_out_of_line(6, accumulator()));

	std::function<int(int)> factorial = [&](int n) { return n < 2 ? 1 : n * factorial(n - 1); };
	mix(factorial(7));
	mix(compose([](int x) { return x + 1; }, factorial)(4));

	std::vector<int> values(14);
	std::iota(values.begin(), values.end(), 3);
	std::transform(values.begin(), values.end(), values.begin(), [](int v) { return v * 17 % 23; });
	std::sort(values.begin(), values.end(), [](int a, int b) { return (a ^ 5) < (b ^ 5); });
	mix(std::accumulate(values.begin(), values.end(), 0, [](int a, int v) { return a * 2 + v; }));
	mix(std::count_if(values.begin(), values.end(), [](int v) { return v % 2; }));
	auto bound = std::bind([](int a, int b) { return a * 10 + b; }, std::placeholders::_2, 4);
	mix(bound(1, 6));
	report();
	return 0;
}

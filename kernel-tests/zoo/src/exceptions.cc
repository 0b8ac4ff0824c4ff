// C++ exceptions: through cleanups over five frames, nested, rethrown, from a constructor, from a
// tiny function, in a loop.
#include <stdexcept>
#include <string>

#include "checksum.h"

struct guard {
	int id;
	explicit guard(int id) : id(id) {}
	~guard() { mix(id & 1 ? id * 3 : id); }
};

struct odd_error : std::runtime_error {
	int value;
	explicit odd_error(int value) : std::runtime_error("odd"), value(value) {}
};

NOINLINE static void tiny_throw() { throw 1; }

NOINLINE static int five(int n)
{
	guard g(n);
	if (n == 0)
		throw odd_error(7);
	return five(n - 1) + g.id;
}

NOINLINE static int nested(int n)
{
	guard outer(n + 10);
	try {
		guard inner(n + 20);
		try {
			if (n % 2)
				tiny_throw();
			mix(five(n % 3 + 1));
		} catch (int code) {
			mix(code);
			throw std::string("nested");
		}
	} catch (const std::string &text) {
		mix(text.size());
		return 1;
	}
	return 2;
}

struct fragile {
	guard first;
	fragile(int n) : first(n)
	{
		if (n > 3)
			throw n;
		mix(90);
	}
	~fragile() { mix(91); }
};

NOINLINE static int construct(int n)
{
	try {
		fragile f(n);
		return f.first.id;
	} catch (...) {
		mix(92);
		return -1;
	}
}

NOINLINE static void rethrows(int n)
{
	try {
		five(n);
	} catch (std::exception &) {
		guard g(40 + n);
		throw;
	}
}

int main()
{
	for (int n = 0; n < 2; n++)
		try {
			mix(nested(n));
		} catch (odd_error &e) {
			mix(e.value);
		}
	mix(construct(2));
	mix(construct(5));
	try {
		rethrows(2);
	} catch (...) {
		mix(60);
	}
	report();
	return 12;
}

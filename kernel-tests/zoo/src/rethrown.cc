// Exceptions that are kept and thrown again later, by functions of the library that never return.
#include <exception>
#include <string>

#include "checksum.h"

static std::exception_ptr kept;

NOINLINE static int thrower(int i)
{
	if (i % 3 == 0)
		throw 5 + i;
	if (i % 3 == 1)
		throw std::string("abc");
	return i;
}

NOINLINE static int keeper(int i)
{
	try {
		return thrower(i);
	} catch (...) {
		kept = std::current_exception();
		try {
			std::rethrow_exception(kept);
		} catch (std::string &s) {
			return s.size();
		} catch (int v) {
			return v + 99;
		}
	}
}

NOINLINE static int late(int i)
{
	try {
		if (i & 1)
			mix(i);
		std::rethrow_exception(kept);
	} catch (int v) {
		return v;
	} catch (...) {
		return -1;
	}
}

struct Nested : std::nested_exception {};

NOINLINE static int inner(int i)
{
	try {
		try {
			thrower(i * 3);
		} catch (int) {
			std::throw_with_nested(Nested());
		}
	} catch (const Nested &n) {
		try {
			n.rethrow_nested();
		} catch (int v) {
			return v;
		}
	}
	return 0;
}

int main()
{
	for (int i = 0; i < 30; i++) {
		mix(keeper(i));
		if (kept)
			mix(late(i));
		if (i % 4 == 0)
			mix(inner(i));
	}
	kept = nullptr;
	report();
	return 4;
}

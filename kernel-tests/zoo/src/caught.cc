// Exceptions that the library catches, which then calls the same routine again, in the same place:
// a stream's buffer that refuses some characters.
#include <ios>
#include <ostream>
#include <sstream>

#include "checksum.h"

static std::stringbuf nothing;
static std::ios strict(&nothing); // throws when it goes bad

NOINLINE static void fail(int c)
{
	if (c == 'x')
		checksum += 7;
	strict.clear(std::ios::badbit); // a tail jump, where optimised
}

NOINLINE static int refuse(int c)
{
	fail(c);
	checksum += c;
	return c;
}

NOINLINE static void count(int c)
{
	if (c & 1)
		checksum += 3;
}

NOINLINE static int check(int c)
{
	count(c);
	return refuse(c) + 1;
}

struct refusing : std::streambuf {
	int overflow(int c) override
	{
		if (c > 'h')
			return c;
		while (c > 'e') {
			count(c);
			c = check(c);
		}
		int result = check(c);
		checksum ^= result;
		return result;
	}
};

NOINLINE static int put_all(std::ostream &out)
{
	int bad = 0;
	for (char c = 'a'; c < 'k'; c++) {
		out.clear();
		out.put(c);
		if (!out)
			bad++;
	}
	return bad;
}

int main()
{
	refusing buffer;
	std::ostream out(&buffer);
	strict.exceptions(std::ios::badbit);
	mix(put_all(out));
	mix(put_all(out));
	report();
	return 6;
}

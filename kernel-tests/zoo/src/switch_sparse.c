// Sparse switches: binary search by compares, bit tests, ranges, and a table with holes next to far
// cases.
#include "checksum.h"

NOINLINE static int sparse(unsigned c)
{
	switch (c) {
	case 3: return 1;
	case 71: mix(c); return 2;
	case 999: return 3;
	case 20011: mix(c + 1); break;
	case 500000: return 5;
	case 7000003: return 6;
	case 0x80000000u: return 7;
	}
	return 0;
}

NOINLINE static int bit_test(int c)
{
	switch (c) {
	case 'a': case 'e': case 'i': case 'o': case 'u':
		return 1;
	case 'b': case 'd': case 'f': case 'h': case 'k': case 'l': case 't':
		return 2;
	case 'g': case 'j': case 'p': case 'q': case 'y':
		return 3;
	}
	return 4;
}

NOINLINE static int ranges(int c)
{
	switch (c) {
	case 0 ... 9: return 10;
	case 'A' ... 'Z': mix(c); return 20;
	case 1000 ... 2000: return 30;
	default: return 40;
	}
}

NOINLINE static int mixed(long c)
{
	switch (c) {
	case 10: mix(1); break;
	case 11: mix(2); break;
	case 12: mix(3); break;
	case 14: mix(4); break;
	case 15: mix(5); break;
	case 17: return 1;
	case 5000: mix(6); break;
	case -123456789: return 2;
	case 1L << 40: return 3;
	}
	return 4;
}

int main(void)
{
	static const unsigned far[] = {0, 3, 71, 999, 20011, 500000, 7000003, 0x80000000u, 72, 4};
	for (unsigned i = 0; i < sizeof far / sizeof *far; i++) {
		mix(sparse(far[i]));
		mix(mixed((long)far[i] - 123456789));
	}
	for (int c = 0; c < 128; c++) {
		mix(bit_test(c));
		mix(ranges(c * 17));
		mix(mixed(c));
	}
	mix(mixed(1L << 40) + mixed(5000));
	report();
	return 0;
}

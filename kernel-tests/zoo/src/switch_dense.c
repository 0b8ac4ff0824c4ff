// Dense switches: jump tables with offset and negative ranges, nested, in a loop, with cases that
// only return constants.
#include "checksum.h"

NOINLINE static int constants(int c)
{
	switch (c) {
	case 0: return 17;
	case 1: return 4;
	case 2: return 99;
	case 3: return -5;
	case 4: return 1 << 20;
	case 5: return 3;
	case 6: return 8;
	default: return 0;
	}
}

NOINLINE static int negative(int c, int x)
{
	switch (c) {
	case -4: x += 3; break;
	case -3: x *= 5; break;
	case -2: x -= 7; /* falls through */
	case -1: x ^= 9; break;
	case 0: x = -x; break;
	case 1: x <<= 2; break;
	case 2: return x;
	}
	return x + 1;
}

NOINLINE static unsigned offset(unsigned c)
{
	unsigned r = c;
	switch (c) {
	case 1000: r += 1; break;
	case 1001: r = r * 3 + 2; break;
	case 1002: mix(r); break;
	case 1003: r -= 4; break;
	case 1004: r /= 5; break;
	case 1006: mix(r + 1); break;
	default: r = 6;
	}
	return r;
}

NOINLINE static int nested(int a, int b)
{
	int r = 0;
	switch (a) {
	case 0: r = 1; break;
	case 1:
		switch (b) {
		case 0: r = 10; mix(r); break;
		case 1: r = 11; break;
		case 2: r = constants(b); break;
		case 3: r = a - b; break;
		case 4: r = a * 31; break;
		default: return -1;
		}
		break;
	case 2: r = b; mix(b); break;
	case 3: r = b * b; break;
	case 4: r = ~b; break;
	case 5: return 5;
	}
	return r * 2;
}

NOINLINE static unsigned long wide(unsigned long c, unsigned long x)
{
	switch (c) {
	case 0: x += 1; break;
	case 1: x *= 3; break;
	case 2: x ^= 9; break;
	case 3: x = ~x; break;
	case 5: x += 4; break;
	case 7: x *= 5; break;
	case 8: mix(x); break;
	case 9: x ^= 77; break;
	case 10: x -= 3; break;
	default: x += 3;
	}
	return x;
}

NOINLINE static long wide_negative(long c, long x)
{
	switch (c) {
	case -5: x += 1; break;
	case -4: x *= 3; break;
	case -3: x ^= 9; break;
	case -1: x += 4; break;
	case 0: x *= 5; break;
	case 1: mix(x); break;
	case 2: x -= 3; break;
	}
	return x;
}

// A state machine: every case leads back to the switch.
NOINLINE static void machine(const char *input)
{
	int state = 0;
	for (; *input; input++)
		switch (state) {
		case 0: state = *input == 'a' ? 1 : 2; break;
		case 1: mix(state); state = *input == 'b' ? 3 : 0; break;
		case 2: state = *input == 'c' ? 4 : 0; break;
		case 3: mix(3); state = 0; break;
		case 4: state = *input == 'd' ? 5 : 2; break;
		case 5: mix(*input); state = 1; break;
		}
	mix(state);
}

int main(void)
{
	for (int round = 0; round < 3; round++) {
		for (int c = -6; c < 9; c++) {
			mix(constants(c));
			mix(negative(c, c + round));
		}
		for (unsigned c = 998; c < 1009; c++)
			mix(offset(c));
		for (int a = -1; a < 7; a++)
			for (int b = -1; b < 6; b++)
				mix(nested(a, b));
		for (long c = -8; c < 14; c++)
			mix(wide(c, c + round) + wide_negative(c, round));
		machine("abacdcdaabbccddabcd");
	}
	report();
	return 2;
}

// A routine with 2^24 acyclic paths: a chain of independent decisions, too many to number without a
// cut.
#include "checksum.h"

NOINLINE static unsigned chain(unsigned bits)
{
	unsigned r = 1;
	if (bits >> 0 & 1)
		r += 3;
	if (bits >> 1 & 1)
		r ^= 5;
	if (bits >> 2 & 1)
		r *= 7;
	if (bits >> 3 & 1)
		r -= 11;
	if (bits >> 4 & 1)
		r += 3;
	if (bits >> 5 & 1)
		r ^= 5;
	if (bits >> 6 & 1)
		r *= 7;
	if (bits >> 7 & 1)
		r -= 11;
	if (bits >> 8 & 1)
		r += 3;
	if (bits >> 9 & 1)
		r ^= 5;
	if (bits >> 10 & 1)
		r *= 7;
	if (bits >> 11 & 1)
		r -= 11;
	if (bits >> 12 & 1)
		r += 3;
	if (bits >> 13 & 1)
		r ^= 5;
	if (bits >> 14 & 1)
		r *= 7;
	if (bits >> 15 & 1)
		r -= 11;
	if (bits >> 16 & 1)
		r += 3;
	if (bits >> 17 & 1)
		r ^= 5;
	if (bits >> 18 & 1)
		r *= 7;
	if (bits >> 19 & 1)
		r -= 11;
	if (bits >> 20 & 1)
		r += 3;
	if (bits >> 21 & 1)
		r ^= 5;
	if (bits >> 22 & 1)
		r *= 7;
	if (bits >> 23 & 1)
		r -= 11;
	return r;
}

// A cascade of two-way choices inside a loop with an early exit in the middle.
NOINLINE static unsigned ladder(unsigned x, int rounds)
{
	unsigned r = x;
	while (rounds-- > 0) {
		r = r & 1 ? r * 3 + 1 : r >> 1;
		r = r & 2 ? r ^ x : r + 1;
		if (r % 97 == 0)
			return r;
		r = r & 4 ? r - 5 : r + x;
		r = r & 8 ? ~r : r * 5;
		if (r % 89 == 0)
			break;
		r = r & 16 ? r + 9 : r ^ 0x55;
	}
	return r + rounds;
}

int main(void)
{
	unsigned seed = 1;
	for (int i = 0; i < 120; i++) {
		seed = seed * 1103515245 + 12345;
		mix(chain(seed >> 3));
	}
	for (unsigned x = 1; x < 60; x++)
		mix(ladder(x * 7, 12));
	report();
	return 0;
}

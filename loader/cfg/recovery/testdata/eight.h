// What switches of eight cases need: cases of their own, none of which a compiler makes a table
// of numbers of.
#pragma once

#define N __attribute__((noinline))
volatile long q;
static unsigned other = 2;
N void set(unsigned *p, unsigned v) {
	*p = v & 7;
	q++;
}
N unsigned *pick(unsigned *p, unsigned v) {
	set(p, v);
	return v & 8 ? p : &other;
}
#define EIGHT(x) switch (x) { \
	case 0: a += q; \
	case 1: a ^= q + 1; break; \
	case 2: a *= q + 3; break; \
	case 3: a -= q * 5; \
	case 4: a |= q + 8; break; \
	case 5: a += q * q; break; \
	case 6: a -= q + 9; \
	case 7: a ^= q + 77; break; \
	default: __builtin_unreachable(); }

// Switches without a check of their own, behind comparisons of what is not the index any more, or
// never was.
#include "checksum.h"

static unsigned other = 2;
static volatile unsigned state;
static long sum;

#define EIGHT(x) switch (x) { \
	case 0: a += state; /* falls through */ \
	case 1: a ^= sum + 1; break; \
	case 2: a *= state + 3; break; \
	case 3: a -= sum * 5; /* falls through */ \
	case 4: a |= state + 8; break; \
	case 5: a += sum * 9; break; \
	case 6: a -= state + 9; /* falls through */ \
	case 7: a ^= sum + 77; break; \
	default: __builtin_unreachable(); \
	}

NOINLINE static void set(unsigned *p, unsigned v)
{
	*p = v & 7;
	sum += v;
}

NOINLINE static unsigned *pick(unsigned *p, unsigned v)
{
	set(p, v);
	return v & 8 ? p : &other;
}

NOINLINE static unsigned long changed_by_call(unsigned long a, unsigned v)
{
	unsigned x;
	set(&x, v);
	if (x > 3)
		return a;
	set(&x, v >> 1);
	EIGHT(x)
	return a * 7;
}

NOINLINE static unsigned long changed_through_pointer(unsigned long a, unsigned v)
{
	unsigned x, *p = pick(&x, v);
	if (x > 3)
		return a;
	*p = v >> 1 & 7;
	EIGHT(x)
	set(&x, 1);
	return a * 7;
}

NOINLINE static unsigned long changed_beneath_pointer(unsigned long a, unsigned v)
{
	unsigned x, *p = pick(&x, v);
	if (*p <= 3) {
		x = v >> 1 & 7;
		EIGHT(*p)
	}
	set(&x, 1);
	return a * 7;
}

NOINLINE static unsigned long changed_as_element(unsigned long a, unsigned v)
{
	unsigned x[8];
	for (int i = 0; i < 8; i++)
		x[i] = (v + i) & 7;
	if (x[2] <= 3) {
		x[v & 7] = v >> 1 & 7;
		EIGHT(x[2])
	}
	return a * 7 + x[1];
}

NOINLINE static void next_state(void)
{
	state = state * 5 % 8;
}

NOINLINE static unsigned long read_again(unsigned long a)
{
	if (state <= 3) {
		next_state();
		EIGHT(state)
	}
	return a * 7;
}

struct pair {
	unsigned a, b;
};

NOINLINE static unsigned long another_half(unsigned long a, struct pair s)
{
	if (s.a > 5)
		return a;
	EIGHT(s.b)
	return a * 7;
}

NOINLINE static unsigned long other_bits(unsigned long a, unsigned v)
{
	unsigned char c = v;
	sum += "a string to read from"[c & 15];
	if (c > 2)
		return c;
	EIGHT(v >> 8)
	return a * 7;
}

int main(void)
{
	for (unsigned i = 0; i < 96; i++) {
		mix(changed_by_call(i, i * 7));
		mix(changed_through_pointer(i, i * 5));
		mix(changed_beneath_pointer(i, i * 3));
		mix(changed_as_element(i, i));
		state = i % 8;
		mix(read_again(i));
		mix(another_half(i, (struct pair){i % 7, i / 7 % 8}));
		mix(other_bits(i, i % 8 << 8 | i / 8 % 4));
	}
	report();
	return 0;
}

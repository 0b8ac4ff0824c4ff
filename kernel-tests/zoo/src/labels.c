// Labels that are kept in memory, as COBOL's PERFORM has them: it is not known where the jumps to
// them lead, nor what is called there.
#include "checksum.h"

struct perform {
	unsigned number;
	void *back;
};

static struct perform performs[8], *inner = performs;

__attribute__((noinline, noclone)) static void leaf(unsigned value) { mix(value); }

NOINLINE static void odd_or_even(unsigned value)
{
	if (value & 1)
		leaf(value);
	else
		mix(3);
}

NOINLINE static void often(unsigned value)
{
	for (unsigned k = 0; k < 200; k++)
		odd_or_even(value + k);
}

#define PERFORM(section, n)                                  \
	do {                                                 \
		*++inner = (struct perform){n, &&back_##n};  \
		goto section;                                \
	back_##n:                                            \
		inner--;                                     \
		leaf(n);                                     \
	} while (0)

int main(void)
{
	unsigned i;
	for (i = 1; i < 20; i++) {
		PERFORM(first, 1);
		if (i & 1)
			PERFORM(second, 2);
		often(i);
	}
	report();
	return 0;
first:
	mix(i);
	if (i & 4)
		PERFORM(second, 3);
	goto *inner->back;
second:
	mix(7);
	goto *inner->back;
}

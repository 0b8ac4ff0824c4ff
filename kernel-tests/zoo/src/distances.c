// Functions whose addresses are nowhere as words of their own: as distances from a table and from
// the word itself, with a tag, and in packed structures.
#include "checksum.h"

typedef unsigned function(unsigned x);

NOINLINE static unsigned triple(unsigned x) { return x * 3 + 1; }
NOINLINE static unsigned lower(unsigned x) { return x > 5 ? x - 5 : x; }
NOINLINE static unsigned odd(unsigned x) { return x & 1 ? x ^ 9 : triple(x); }
NOINLINE static unsigned halve(unsigned x) { return x / 2 + lower(x); }

// Not static, so that the assembler finds it, and in no table of dynamic symbols.
#define HIDDEN __attribute__((noinline, visibility("hidden")))
HIDDEN unsigned first(unsigned x) { return x % 7 ? x + 2 : odd(x); }
HIDDEN unsigned second(unsigned x) { return x & 4 ? x * 5 : halve(x); }
HIDDEN unsigned third(unsigned x) { return x > 20 ? second(x) : x + 11; }

extern const int table[], own[];
__asm__(".pushsection .rodata\n.balign 4\n"
	".hidden table\n.globl table\ntable: .long first - table, second - table\n"
	".long 0\n"
	".hidden own\n.globl own\nown: .long third - .\n"
	".popsection\n");

NOINLINE static unsigned scale(unsigned x) { return x * 5 + (x & 3 ? 1 : 2); }
static struct __attribute__((packed)) {
	char kind;
	function *f;
} odd_place[] = {{1, scale}, {2, halve}};

static char *volatile tagged[] = {(char *)triple + 3, (char *)lower + 1};

NOINLINE static unsigned by_table(unsigned i, unsigned x)
{
	return ((function *)((const char *)table + table[i]))(x) + 1;
}
NOINLINE static unsigned by_itself(unsigned x)
{
	return ((function *)((const char *)own + *own))(x) + 1;
}
NOINLINE static unsigned by_tag(unsigned i, unsigned x)
{
	return ((function *)(tagged[i] - (i ? 1 : 3)))(x) + 1;
}

NOINLINE static unsigned by_packed(unsigned i, unsigned x) { return odd_place[i].f(x) + 1; }

int main(void)
{
	for (unsigned i = 0; i < 40; i++) {
		mix(by_table(i & 1, i));
		mix(by_itself(i));
		mix(by_packed(i & 1, i));
		mix(by_tag(i >> 1 & 1, i));
		if (i % 3 == 0)
			mix(first(i) + second(i) + third(i) + triple(i) + lower(i) + scale(i));
		odd_place[i & 1].kind++;
	}
	report();
	return 0;
}

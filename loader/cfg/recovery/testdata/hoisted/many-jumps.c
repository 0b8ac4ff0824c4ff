// An interpreter with hundreds of computed gotos keeps the table in a slot of a frame in which
// it takes addresses, too, and has it in a register again after each call: what was found of
// the slot for one jump was looked for again for each.
#include "each.h"
#include "labels.h"

#define DISPATCH goto *tab[*pc++ | seen[0]];
#define ENTRY(n) &&l##n,
#define LABEL(n) \
	l##n: \
	if (a & 1L << n % 20) { \
		a = h(a, b + n); \
		b ^= h(c, d); \
		if (b & 4) c += h(a, e); \
		d ^= h(c, a); \
	} else { \
		c += a * n; \
		d -= e; \
		e ^= c; \
		g += i * k; \
		i ^= a; \
		k -= b; \
	} \
	DISPATCH
char *volatile kept;
N long h(long a, long b) {
	q += a ^ b;
	return a - b;
}
N long f(const unsigned char *pc, long a, long b, long c, long d, long e) {
	static void *const t[] = { EACH_255(ENTRY) &&end };
	void *const *tab = t;
	__asm__("" : "+r"(tab));
	long g = a * 3, i = b * 5, k = c * 7;
	char seen[8] = { 0 };
	kept = seen;
	DISPATCH
	EACH_255(LABEL)
end: return a + b + c + d + e + g + i + k;
}

#include "callees.h"

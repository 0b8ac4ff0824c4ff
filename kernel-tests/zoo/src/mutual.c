// Mutual recursion: two and three routines, through routines without a branch, and through
// pointers.
#include "checksum.h"

NOINLINE static int is_odd(unsigned n);
NOINLINE static int is_even(unsigned n) { return n == 0 ? 1 : 1 + is_odd(n - 1); }
NOINLINE static int is_odd(unsigned n) { return n == 0 ? 0 : 2 * is_even(n - 1); }

// Hofstadter's sequences call each other inside each other's arguments.
NOINLINE static int male(int n);
NOINLINE static int female(int n) { return n == 0 ? 1 : n - male(female(n - 1)); }
NOINLINE static int male(int n) { return n == 0 ? 0 : n - female(male(n - 1)); }

// plain_a and plain_b decide nothing: whoever watches decisions sees only turn.
NOINLINE static unsigned turn(unsigned n);
NOINLINE static unsigned plain_b(unsigned n) { return turn(n) + 1; }
NOINLINE static unsigned plain_a(unsigned n) { return plain_b(n - 1) ^ n; }
NOINLINE static unsigned turn(unsigned n)
{
	if (n < 2)
		return n;
	if (n % 5 == 0)
		return plain_a(n) + plain_b(n / 2);
	return plain_a(n);
}

typedef struct shape shape;
struct shape { int (*area)(const shape *, int); const shape *inner; };
NOINLINE static int box(const shape *s, int n)
{
	return n <= 0 ? 1 : 2 + s->inner->area(s->inner, n - 1);
}
NOINLINE static int ring(const shape *s, int n)
{
	return n <= 0 ? 0 : s->inner->area(s->inner, n - 2) * 3;
}
NOINLINE static int hull(const shape *s, int n) { return s->inner->area(s->inner, n) - 1; }

static shape shapes[3];

int main(void)
{
	for (unsigned n = 0; n < 24; n += 3)
		mix(is_even(n) + 10 * is_odd(n));
	for (int n = 0; n < 11; n++)
		mix(female(n) + 100 * male(n));
	for (unsigned n = 0; n < 40; n += 7)
		mix(turn(n));
	shapes[0] = (shape){box, &shapes[1]};
	shapes[1] = (shape){ring, &shapes[2]};
	shapes[2] = (shape){hull, &shapes[0]};
	for (int n = 0; n < 20; n++)
		mix(shapes[n % 3].area(&shapes[n % 3], n));
	report();
	return 0;
}

// Switches without a bound, or on what is read again behind a store, some of whose cases are cold.
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

struct machine {
	int state, steps;
	char *text;
};

static int mode, calls;
static volatile int seen;
static long sum;

NOINLINE static void unbounded(int n)
{
	calls++;
	switch (mode) {
	case 0: sum += n; break;
	case 1: sum ^= n * 3; break;
	case 2: abort();
	case 3: sum *= 3; break;
	case 4: mix(4); break;
	case 5: sum -= n; break;
	case 6: sum += getppid() > 0; break;
	default: __builtin_unreachable();
	}
}

NOINLINE static void read_again(int n)
{
	seen = n;
	switch (mode) {
	case 0: break;
	case 1: sum += n; break;
	case 2: abort();
	case 3: sum ^= n * 5; break;
	case 4: mix(44); break;
	case 5: sum -= getppid() > 0; break;
	case 6: sum *= 7; break;
	case 7:
		report();
		exit(7);
	}
}

NOINLINE static int step(struct machine *m, int c)
{
	m->steps++;
	switch (m->state) {
	case 0: m->state = c & 3; return 1;
	case 1: m->text = 0; return c;
	case 2:
		if (c == 9)
			abort();
		m->state = 3;
		break;
	case 3: m->state = 4; return -1;
	case 4:
		fprintf(stderr, "bad %d\n", c);
		abort();
	case 5: return 5;
	case 6: m->state = 0;
	}
	return 0;
}

int main(void)
{
	struct machine m = {0};
	for (int i = 0; i < 20; i++) {
		mix(step(&m, i == 9 ? 8 : i));
		if (m.state == 4)
			m.state = 5 + (i & 1);
		else if (m.state == 5)
			m.state = 0;
	}
	for (int i = 0; i < 14; i++) {
		mode = i % 7 == 2 ? 0 : i % 7;
		unbounded(i);
		read_again(i);
	}
	mix(sum + calls);
	mode = 7;
	read_again(9);
	return 0;
}

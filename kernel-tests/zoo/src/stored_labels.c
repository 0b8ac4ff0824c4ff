// Jumps to labels through pointers that were read from a table before, where no frame is: none
// leaves its routine.
#include "checksum.h"

struct resumable {
	const void *next;
	unsigned op;
	int n;
};

static unsigned state = 1;

static unsigned draw(unsigned x)
{
	state = state * 1103515245u + 12345u + x;
	return state >> 8 & 0xffff;
}

// clang knows the index at the second jump.
NOINLINE static int folded(int n)
{
	static const void *const to[] = {&&add, &&take};
	unsigned s = draw(n);

	goto *to[s % 2];
add:
	n += s & 15;
	if (--n <= 0)
		goto done;
	s = draw(n);
	if (s & 1)
		goto done;
	goto *to[s % 2];
take:
	n -= 3;
	if (n <= 0)
		goto done;
	s = draw(n + 1);
	if (s & 1)
		goto done;
	goto *to[s % 2];
done:
	return n;
}

NOINLINE static int threaded(const void *const *ip, unsigned op, const void *const **out)
{
	static const void *const to[] = {&&add, &&triple, &&shift, &&done};
	int s = op;

	if (out) {
		*out = to;
		return 0;
	}
	goto *to[op & 3];
add:
	s += 2;
	goto **ip++;
triple:
	s *= 3;
	goto **ip++;
shift:
	s ^= s >> 3;
	goto **ip++;
done:
	return s;
}

NOINLINE static int resumed(struct resumable *p)
{
	static const void *const to[] = {&&first, &&second, &&third};

	if (p->next)
		goto *p->next;
	goto *to[p->op % 3];
first:
	p->next = &&second;
	return ++p->n;
second:
	if (p->n & 1) {
		p->next = &&third;
		return p->n += 2;
	}
	p->next = &&first;
	return p->n;
third:
	p->next = 0;
	p->op++;
	return p->n -= 1;
}

int main(void)
{
	const void *const *to;
	struct resumable r = {0, 0, 1};

	threaded(0, 0, &to);
	for (int i = 0; i < 60; i++) {
		const void *code[10];

		for (int k = 0; k < 9; k++)
			code[k] = to[(i * 5 + k * 3) % 3];
		code[9] = to[3];
		mix(folded(i));
		mix(threaded(code, i, 0));
		mix(resumed(&r));
	}
	report();
	return 0;
}

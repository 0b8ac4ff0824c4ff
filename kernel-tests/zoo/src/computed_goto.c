// Interpreters with computed goto: one shared dispatch jump, and one dispatch jump for each
// operation.
#include "checksum.h"

enum { PUSH, ADD, MUL, DUP, SWAP, DEC, JNZ, OUT, HALT };

static const signed char program[] = {
	PUSH, 1, PUSH, 12,            // product, counter
	SWAP, PUSH, 3, ADD, DUP, OUT, // product += 3
	PUSH, 2, MUL, SWAP,           // product *= 2
	DEC, DUP, JNZ, -14, OUT, OUT, HALT,
};

NOINLINE static void shared_dispatch(const signed char *ip)
{
	static const void *const labels[] = {&&push, &&add, &&mul, &&dup, &&swap, &&dec, &&jnz, &&out,
		&&halt};
	int stack[16], *sp = stack, t;
next:
	goto *labels[(int)*ip++];
push: *sp++ = *ip++; goto next;
add: sp--; sp[-1] += sp[0]; goto next;
mul: sp--; sp[-1] *= sp[0]; goto next;
dup: *sp = sp[-1]; sp++; goto next;
swap: t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; goto next;
dec: sp[-1]--; goto next;
jnz:
	ip++;
	if (*--sp)
		ip += ip[-1];
	goto next;
out: mix(*--sp); goto next;
halt: return;
}

#define NEXT goto *labels[(int)*ip++]

NOINLINE static void threaded(const signed char *ip)
{
	static const void *const labels[] = {&&push, &&add, &&mul, &&dup, &&swap, &&dec, &&jnz, &&out,
		&&halt};
	int stack[16], *sp = stack, t;
	NEXT;
push: *sp++ = *ip++; NEXT;
add: sp--; sp[-1] += sp[0]; NEXT;
mul: sp--; sp[-1] *= sp[0]; NEXT;
dup: *sp = sp[-1]; sp++; NEXT;
swap: t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; NEXT;
dec: sp[-1]--; NEXT;
jnz:
	ip++;
	if (*--sp)
		ip += ip[-1];
	NEXT;
out: mix(*--sp); NEXT;
halt: return;
}

// Label differences, as position-independent interpreters use them.
NOINLINE static int relative(int n)
{
	static const int offsets[] = {&&even - &&even, &&odd - &&even, &&done - &&even};
	int r = 0, i = 0;
	goto *(&&even + offsets[n > 0 ? 0 : 2]);
even:
	r += i;
	i++;
	goto *(&&even + offsets[i < n ? 1 : 2]);
odd:
	r ^= i << 4;
	i++;
	goto *(&&even + offsets[i < n ? 0 : 2]);
done:
	return r;
}

int main(void)
{
	for (int round = 0; round < 4; round++) {
		shared_dispatch(program);
		threaded(program);
	}
	for (int n = 0; n < 30; n++)
		mix(relative(n));
	report();
	return 0;
}

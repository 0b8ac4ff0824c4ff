// Direct threaded code (Bell 1973): the program that is interpreted consists of the addresses of the operations.
#include "checksum.h"

enum { PUSH, ADD, MUL, DUP, SWAP, DEC, JNZ, OUT, CALL, RETURN, HALT, OPERATIONS };

static const signed char source[] = {
	PUSH, 1, PUSH, 12,       // product, counter
	SWAP, CALL, 11, DUP, OUT, SWAP,
	DEC, DUP, JNZ, -10, OUT, OUT, HALT,
	PUSH, 3, ADD, PUSH, 2, MUL, RETURN, // product = (product + 3) * 2
};

typedef union { void *label; long value; } cell;

// Without a program it hands out its labels.
NOINLINE static void run(const cell *program, void **labels)
{
	const cell *ip = program, *back[4], **bp = back;
	long stack[16], *sp = stack, t;

	if (!program) {
		void *const all[] = {&&push, &&add, &&mul, &&dup, &&swap, &&dec, &&jnz, &&out, &&call, &&ret, &&halt};
		for (int i = 0; i < OPERATIONS; i++)
			labels[i] = all[i];
		return;
	}
#define NEXT goto *ip++->label
	NEXT;
push: *sp++ = ip++->value; NEXT;
add: sp--; sp[-1] += sp[0]; NEXT;
mul: sp--; sp[-1] *= sp[0]; NEXT;
dup: *sp = sp[-1]; sp++; NEXT;
swap: t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; NEXT;
dec: sp[-1]--; NEXT;
jnz:
	ip++;
	if (*--sp)
		ip += ip[-1].value;
	NEXT;
out: mix((unsigned)*--sp); NEXT;
call: *bp++ = ip + 1; ip += ip->value; NEXT;
ret: ip = *--bp; NEXT;
halt: return;
}

// One jump, to what a variable has.
NOINLINE static unsigned states(unsigned n)
{
	void *state = &&even;
	unsigned r = 0;

	for (; n; n--) {
		goto *state;
	even:
		r += n;
		state = r & 4 ? &&odd : &&even;
		mix(r);
		continue;
	odd:
		r ^= n << 3;
		state = n % 3 ? &&third : &&even;
		continue;
	third:
		r -= 7;
		state = &&even;
	}
	return r;
}

int main(void)
{
	enum { LENGTH = sizeof(source) };
	void *labels[OPERATIONS];
	cell program[LENGTH];

	run(0, labels);
	for (int i = 0; i < LENGTH; i++) {
		int operation = source[i];
		program[i].label = labels[operation];
		if (operation == PUSH || operation == JNZ || operation == CALL) {
			i++;
			program[i].value = source[i];
		}
	}
	for (int round = 0; round < 4; round++)
		run(program, 0);
	mix(states(40));
	report();
	return 0;
}

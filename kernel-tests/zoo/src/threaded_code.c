// Direct-threaded code: programs that were translated to the labels of their operations, which a
// table, or a call, had given.
#include "checksum.h"

enum { PUSH, ADD, MUL, DUP, SWAP, DEC, JNZ, OUT, HALT, OPERATIONS };

static const signed char program[] = {
	PUSH, 1, PUSH, 9,             // product, counter
	SWAP, PUSH, 3, ADD, DUP, OUT, // product += 3
	PUSH, 2, MUL, SWAP,           // product *= 2
	DEC, DUP, JNZ, -14, OUT, OUT, HALT,
};

union cell {
	const void *operation;
	long operand;
};

static union cell code[sizeof program];
static const void *const *operations, *halted;

NOINLINE static unsigned noted(unsigned value)
{
	mix(value);
	return value & 1;
}

// Without a program it says where its operations are.
NOINLINE static long run(const union cell *ip)
{
	static const void *const labels[OPERATIONS] = {&&push, &&add, &&mul, &&dup, &&swap, &&dec,
		&&jnz, &&out, &&halt};
	long stack[16], *sp = stack, t;
	if (!ip) {
		operations = labels;
		halted = &&stop;
		return 0;
	}
	goto *ip++->operation;
push: *sp++ = ip++->operand; goto *ip++->operation;
add: sp--; sp[-1] += sp[0]; goto *ip++->operation;
mul: sp--; sp[-1] *= sp[0]; goto *ip++->operation;
dup: *sp = sp[-1]; sp++; goto *ip++->operation;
swap: t = sp[-1]; sp[-1] = sp[-2]; sp[-2] = t; goto *ip++->operation;
dec: sp[-1]--; goto *ip++->operation;
jnz:
	ip++;
	if (*--sp)
		ip += ip[-1].operand;
	goto *ip++->operation;
out:
	if (noted((unsigned)*--sp))
		mix(7);
	goto *ip++->operation;
halt:
	mix(1);
	return sp - stack;
stop:
	mix(2);
	return sp - stack;
}

// PUSH and JNZ have an operand behind them.
NOINLINE static void translate(const void *last)
{
	for (unsigned i = 0; i < sizeof program; i++) {
		code[i].operation = program[i] == HALT ? last : operations[(int)program[i]];
		if (program[i] == PUSH || program[i] == JNZ) {
			i++;
			code[i].operand = program[i];
		}
	}
}

int main(void)
{
	run(0);
	translate(operations[HALT]);
	mix((unsigned)run(code));
	translate(halted);
	mix((unsigned)run(code));
	report();
	return 0;
}

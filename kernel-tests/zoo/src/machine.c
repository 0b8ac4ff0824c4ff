// A small virtual machine that runs a sieve: a switch in a loop with helpers, an operand stack and
// calls.
#include "checksum.h"

typedef enum { CONST, LOAD, STORE, ADD, SUB, MUL, LESS, JUMP, BRANCH, PEEK, POKE, CALL, RETURN,
	PRINT, STOP } opcode;

enum { MEMORY = 64 };

typedef struct {
	int stack[32], calls[16], memory[MEMORY], locals[8];
	int sp, cp, ip;
} machine;

enum { LIMIT = 26 };

static const int code[] = {
	CONST, 2, STORE, 0,                                    //  0: i = 2
	LOAD, 0, CONST, LIMIT, LESS, BRANCH, 12, STOP,         //  4: while i < LIMIT
	// 12: unless i is crossed out, cross out its multiples
	LOAD, 0, PEEK, BRANCH, 19, CALL, 28,
	LOAD, 0, CONST, 1, ADD, STORE, 0, JUMP, 4,             // 19:   i++
	LOAD, 0, PRINT, LOAD, 0, LOAD, 0, ADD, STORE, 1,       // 28: print i; j = i + i
	LOAD, 1, CONST, LIMIT, LESS, BRANCH, 46, RETURN,       // 38: while j < LIMIT
	CONST, 1, LOAD, 1, POKE,                               // 46:   crossed[j] = 1
	LOAD, 1, LOAD, 0, ADD, STORE, 1, JUMP, 38,             // 51:   j += i
};

NOINLINE static void push(machine *m, int value) { m->stack[m->sp++] = value; }
NOINLINE static int pop(machine *m) { return m->stack[--m->sp]; }

NOINLINE static int arithmetic(opcode op, int a, int b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	default: return a < b;
	}
}

NOINLINE static int step(machine *m)
{
	int a, b;
	opcode op = code[m->ip++];
	switch (op) {
	case CONST: push(m, code[m->ip++]); break;
	case LOAD: push(m, m->locals[code[m->ip++]]); break;
	case STORE: m->locals[code[m->ip++]] = pop(m); break;
	case ADD: case SUB: case MUL: case LESS:
		b = pop(m);
		a = pop(m);
		push(m, arithmetic(op, a, b));
		break;
	case JUMP: m->ip = code[m->ip]; break;
	case BRANCH:
		a = code[m->ip++];
		if (pop(m))
			m->ip = a;
		break;
	case PEEK: push(m, m->memory[pop(m) % MEMORY]); break;
	case POKE:
		a = pop(m);
		m->memory[a % MEMORY] = pop(m);
		break;
	case CALL:
		m->calls[m->cp++] = m->ip + 1;
		m->ip = code[m->ip];
		break;
	case RETURN: m->ip = m->calls[--m->cp]; break;
	case PRINT: mix(pop(m)); break;
	case STOP: return 0;
	}
	return 1;
}

int main(void)
{
	machine m = {0};
	int steps = 0;
	while (step(&m))
		steps++;
	mix(steps);
	report();
	return steps & 0x7f;
}

// A recursive-descent parser: mutual recursion, errors by longjmp, many early returns, a table of
// named functions.
#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

static const char *input;
static jmp_buf on_error;

NOINLINE static void fail(int code) { longjmp(on_error, code); }

static void skip_blanks(void)
{
	while (isspace((unsigned char)*input))
		input++;
}

static int accept(char c)
{
	skip_blanks();
	if (*input != c)
		return 0;
	input++;
	return 1;
}

static long negate(long x) { return -x; }
static long square(long x) { return x * x; }
static long collapse(long x)
{
	while (x > 9) {
		long digits = 0;
		for (; x; x /= 10)
			digits += x % 10;
		x = digits;
	}
	return x;
}

static const struct { const char *name; long (*apply)(long); } functions[] = {
	{"neg", negate}, {"square", square}, {"collapse", collapse}, {"abs", labs},
};

static long expression(void);

NOINLINE static long named(void)
{
	char name[12];
	unsigned n = 0;
	while (isalpha((unsigned char)*input) && n < sizeof name - 1)
		name[n++] = *input++;
	name[n] = 0;
	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
		if (strcmp(functions[i].name, name) == 0) {
			if (!accept('('))
				fail(2);
			long value = functions[i].apply(expression());
			if (!accept(')'))
				fail(3);
			return value;
		}
	fail(4);
	return 0;
}

static long factor(void)
{
	skip_blanks();
	if (accept('(')) {
		long value = expression();
		if (!accept(')'))
			fail(3);
		return value;
	}
	if (isdigit((unsigned char)*input))
		return strtol(input, (char **)&input, 10);
	return named();
}

static long term(void)
{
	long value = factor();
	for (;;) {
		if (accept('*'))
			value *= factor();
		else if (accept('/')) {
			long divisor = factor();
			if (divisor == 0)
				fail(5);
			value /= divisor;
		} else
			return value;
	}
}

static long expression(void)
{
	long value = term();
	for (;;) {
		if (accept('+'))
			value += term();
		else if (accept('-'))
			value -= term();
		else
			return value;
	}
}

int main(void)
{
	static const char *const lines[] = {
		"1 + 2 * 3", "(4 - 7) * (2 + square(3))", "neg(collapse(98765)) / 2", "10 / (5 - 5)", "abs(3 - 11",
		"sin(1)",
		"((((1))))", "2 * collapse(square(12) + 7) - 1",
	};
	for (volatile unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
		input = lines[i];
		int error = setjmp(on_error);
		mix(error ? 1000u + error : (unsigned)expression());
	}
	report();
	return 0;
}

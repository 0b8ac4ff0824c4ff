// Loops of one block that count: by pointers, indices and remainders, up and down, to a limit, to
// zero, or until data says so.
#include <stdlib.h>
#include <string.h>
#include "checksum.h"

static unsigned char bytes[512];
static unsigned short halves[256];
static unsigned words[256];
static double numbers[64];

NOINLINE static unsigned hash(const unsigned char *p, size_t n)
{
	unsigned h = 5381;

	while (n--)
		h = h * 33 ^ *p++;
	return h;
}

NOINLINE static unsigned scan(const char *p)
{
	unsigned h = 0;

	while (*p)
		h = h * 31 + *p++;
	return h;
}

NOINLINE static size_t last_index(const unsigned *p, size_t n, unsigned wanted)
{
	while (n > 0 && p[n - 1] != wanted)
		n--;
	return n;
}

NOINLINE static void fill(unsigned short *p, int n, int step, unsigned short value)
{
	for (int i = 0; i < n; i += step)
		p[i] = value + i;
}

NOINLINE static unsigned sum(const unsigned *p, unsigned from, unsigned to)
{
	unsigned s = 0;

	do {
		s += p[from];
		from++;
	} while (from != to);
	return s;
}

NOINLINE static unsigned bits(unsigned long x)
{
	unsigned n = 0;

	while (x) {
		x &= x - 1;
		n++;
	}
	return n;
}

NOINLINE static unsigned table(void)
{
	unsigned s = 0;

	for (int i = 0; i < 256; i++)
		words[i] = i * 2654435761u >> 16;
	for (int i = 255; i >= 0; i -= 5)
		s ^= words[i] + i;
	return s;
}

NOINLINE static double mean(const double *p, int n)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += p[i];
	return n ? s / n : 0;
}

NOINLINE static unsigned nested(int rows, int columns)
{
	unsigned s = 0;

	for (int i = 0; i < rows; i++) {
		const unsigned *row = words + i * columns;

		if (row[0] & 1)
			s += 7;
		for (int k = 0; k < columns; k++)
			s = s * 3 + row[k];
		if (s & 4)
			continue;
		for (const unsigned *p = row; *p & 6; p++)
			s ^= *p;
	}
	return s;
}

// The rounds of the first loop are known where it begins, those of the second when it has ended,
// and the callee's never here.
NOINLINE static unsigned around(unsigned char *p, int n, int deep)
{
	unsigned s = 0;

	for (int i = 0; i < n; i++)
		s += p[i];
	if (deep > 0)
		s += around(p + 1, n - 1, deep - 1);
	while (*p++ & 3)
		s++;
	return s + n;
}

int main(int argc, char **argv)
{
	char text[64];

	(void)argv;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = i * 7 + i / 3;
	mix(table());
	for (int n = 0; n < 40; n++) {
		mix(hash(bytes + n, n * 3 % 23));
		memset(text, 0, sizeof(text));
		memset(text, 'a' + n % 26, n % 17);
		mix(scan(text));
		mix(last_index(words, n * 5 % 200, words[n]));
		fill(halves, n * 6, 1 + n % 4, n);
		mix(halves[n]);
		mix(sum(words, n, n + 1 + n % 9));
		mix(bits(words[n] * 0x10001ul));
		numbers[n] = n;
		mix((unsigned)mean(numbers, n));
		mix(around(bytes, n % 13, n % 4));
	}
	mix(nested(12, 8 + argc));
	report();
	return 0;
}

// Calling conventions: variadic routines, arguments on the stack, structures by value and in
// memory, nested calls.
#include <stdarg.h>
#include <string.h>

#include "checksum.h"

NOINLINE static int sum_of(int count, ...)
{
	va_list list;
	int sum = 0;
	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

NOINLINE static double typed(const char *types, ...)
{
	va_list list;
	double r = 0;
	va_start(list, types);
	for (; *types; types++)
		switch (*types) {
		case 'i': r += va_arg(list, int); break;
		case 'd': r -= va_arg(list, double); break;
		case 'p': r += *va_arg(list, const int *); break;
		case 'l': r *= (double)va_arg(list, long); break;
		}
	va_end(list);
	return r;
}

NOINLINE static long nine(long a, int b, char c, short d, long e, int f, long g, int h, long i)
{
	return a - b + c * d - e + f * g - h + i;
}

typedef struct { int x, y; } pair;
typedef struct { long words[7]; } large;
typedef struct { double a; long b; } mixed;

NOINLINE static pair swap(pair p) { return (pair){p.y, p.x}; }
NOINLINE static large scale(large l, int by)
{
	for (int i = 0; i < 7; i++)
		l.words[i] *= i % 2 ? by : -by;
	return l;
}
NOINLINE static mixed both(mixed m, pair p) { return (mixed){m.a + p.x, m.b * p.y}; }

NOINLINE static int formatted(char *into, size_t size, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vsnprintf(into, size, format, list);
	va_end(list);
	return n;
}

int main(void)
{
	mix(sum_of(0));
	mix(sum_of(9, 1, 2, 3, 4, 5, 6, 7, 8, 9));
	int pointed = 8;
	mix((int)typed("idpldiidl", 3, 0.5, &pointed, 2L, 1.25, 7, 9, -2.0, 3L));
	for (int i = 0; i < 6; i++) {
		mix((unsigned)nine(i, 2, 3, 4, nine(1, i, 1, 1, 1, 1, 1, 1, i), 6, 7, 8, 9));
		pair p = swap((pair){i, 2 * i + 1});
		large l = scale((large){{1, 2, 3, i, 5, 6, 7}}, p.x);
		mixed m = both((mixed){0.5 * i, l.words[3]}, p);
		mix(p.x + p.y * 3 + (unsigned)l.words[6] + (unsigned)m.a + (unsigned)m.b);
	}
	char text[40];
	mix(formatted(text, sizeof text, "%d-%s-%c", 42, "zoo", 'x'));
	mix(strlen(text));
	report();
	return 0;
}

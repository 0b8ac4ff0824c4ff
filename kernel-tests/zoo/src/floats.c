// Floating point: comparisons with NaN (parity flag), conversions, x87 long double, min and max,
// Newton's iteration.
#include "checksum.h"

NOINLINE static int order(double a, double b)
{
	if (a < b)
		return 1;
	if (a > b)
		return 2;
	if (a == b)
		return 3;
	return 4; // a NaN
}

NOINLINE static int unordered(float a, float b)
{
	int r = 0;
	if (a != b)
		r |= 1;
	if (!(a <= b))
		r |= 2;
	if (__builtin_isgreater(a, b))
		r |= 4;
	return r;
}

NOINLINE static double root(double x)
{
	double guess = x;
	for (int i = 0; i < 60; i++) {
		double next = (guess + x / guess) / 2;
		if (next == guess)
			break;
		guess = next;
	}
	return guess;
}

NOINLINE static long double harmonic(int n)
{
	long double sum = 0;
	for (int i = 1; i <= n; i++)
		sum += i % 5 ? 1.0L / i : -1.0L / i;
	return sum > 1 ? sum : -sum;
}

NOINLINE static int mandelbrot(double cx, double cy)
{
	double x = 0, y = 0;
	int n = 0;
	while (x * x + y * y < 4 && n < 20) {
		double t = x * x - y * y + cx;
		y = 2 * x * y + cy;
		x = t;
		n++;
	}
	return n;
}

int main(void)
{
	volatile double zero = 0;
	double values[] = {1.5, -2, 0, zero / zero, 1 / zero};
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 5; k++) {
			mix(order(values[i], values[k]));
			mix(unordered((float)values[i], (float)values[k]));
		}
	for (int i = 1; i < 12; i++)
		mix((unsigned)(root(i) * 1000));
	mix((unsigned)(harmonic(20) * 1000));
	for (int row = -4; row <= 4; row++)
		for (int column = -6; column < 3; column++)
			mix(mandelbrot(column * 0.3, row * 0.25));
	report();
	return 0;
}

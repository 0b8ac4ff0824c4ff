// Routines that align their stack to more than the calling convention does, beside arrays of
// variable size.
// So the compiler keeps the frame address in a register and in the frame. They recur, call each
// other and ordinary ones, and are called back.
#include <alloca.h>
#include <immintrin.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"

#define AVX2 __attribute__((target("avx2"), noinline))

NOINLINE static void ordinary(const volatile unsigned char *bytes, int n)
{
	for (int i = 0; i < n; i++)
		if (bytes[i] & 1)
			mix(bytes[i]);
}

// misaligned says whether a pointer is not where its type says.
NOINLINE static int misaligned(const void *p, unsigned long alignment)
{
	return ((unsigned long)p & (alignment - 1)) != 0;
}

NOINLINE static int leaf(int n)
{
	alignas(64) volatile unsigned char bytes[64];
	for (int i = 0; i < 64; i++)
		bytes[i] = n + i;
	return bytes[n & 63] + bytes[63] + (int)((unsigned long)bytes & 63);
}

// Its frame differs from one activation to the next.
NOINLINE static int recursive(int n)
{
	alignas(32) unsigned char fixed[32];
	unsigned char *variable = alloca(n * 7 + 1);
	memset(fixed, n, sizeof fixed);
	memset(variable, n + 1, n * 7 + 1);
	mix(misaligned(fixed, 32));
	if (n > 0 && n % 3)
		ordinary(fixed, n);
	if (n > 0)
		return recursive(n - 1) + (n > 1 ? recursive(n - 2) : 0) + fixed[n] + variable[n * 7];
	return leaf(fixed[0]);
}

static int odd(int n);

NOINLINE static int even(int n)
{
	alignas(128) int slots[32];
	int *more = alloca((n + 1) * sizeof *more);
	if (n == 0)
		return 1;
	slots[n & 31] = more[n] = n;
	ordinary((unsigned char *)(slots + (n & 31)), 1);
	return odd(n - 1) + misaligned(slots, 128) + (slots[n & 31] != more[n]);
}

NOINLINE static int odd(int n) { return n == 0 ? 0 : even(n - 1); }

// Arguments on the stack, found by way of the register that the frame address is in.
NOINLINE static int many(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	alignas(32) int sums[8];
	int *rest = alloca((a & 7) * sizeof *rest + 4);
	for (int k = 0; k < 8; k++)
		sums[k] = a + b * k + g * h;
	rest[0] = c + d - e;
	if (i > 4)
		return sums[i & 7] + rest[0] + many(a, b, c, d, e, f, g, h, i - 3);
	return sums[f & 7] + rest[0] + misaligned(sums, 32);
}

// A way out before the stack is aligned, where the optimiser sees that it can be.
NOINLINE static int early(int n)
{
	if (n < 3)
		return n;
	alignas(32) unsigned char bytes[32];
	unsigned char *variable = alloca(n);
	memset(bytes, n, sizeof bytes);
	memset(variable, n, n);
	ordinary(bytes, 2);
	if (n > 9) {
		ordinary(variable, n);
		return bytes[3];
	}
	return variable[n - 1] + leaf(n);
}

NOINLINE static int choose(int n)
{
	alignas(32) unsigned char bytes[32];
	unsigned char *variable = alloca(n + 1);
	memset(bytes, n, sizeof bytes);
	switch (n) {
	case 0: mix(1); variable[n] = 2; break;
	case 1: ordinary(bytes, 1); variable[n] = 3; break;
	case 2: mix(leaf(n)); variable[n] = 4; break;
	case 3: variable[n] = bytes[4]; break;
	case 4: mix(7); ordinary(bytes, 3); variable[n] = 9; break;
	case 5: variable[n] = leaf(6); break;
	case 6: mix(4); variable[n] = bytes[1]; break;
	default: variable[n] = 12;
	}
	return variable[n] + misaligned(bytes, 32);
}

static int compare(const void *a, const void *b)
{
	alignas(32) int pair[8] = {*(const int *)a, *(const int *)b};
	int *copy = alloca((pair[0] & 3) * sizeof *copy + 8);
	copy[0] = pair[0], copy[1] = pair[1];
	if (pair[0] == pair[1])
		return 0;
	ordinary((unsigned char *)pair, 1);
	return copy[0] < copy[1] ? -1 : 1;
}

// Called back and calling what calls back.
static int sorting(const void *a, const void *b)
{
	alignas(64) int small[16] = {*(const int *)b, *(const int *)a, 3};
	int *copy = alloca((*(const int *)a & 3) * sizeof *copy + 12);
	memcpy(copy, small, 12);
	qsort(copy, 3, sizeof *copy, compare);
	return compare(a, b) + (copy[0] > copy[2]) + misaligned(small, 64);
}

NOINLINE static void sort_with(int (*order)(const void *, const void *))
{
	int values[7];
	for (int i = 0; i < 7; i++)
		values[i] = i * 5 % 7;
	qsort(values, 7, sizeof *values, order);
	for (int i = 0; i < 7; i++)
		mix(values[i]);
}

#ifndef __clang__
// A nested function has its own use for the register that is the base elsewhere.
NOINLINE static int nesting(int n)
{
	int calls = 0;
	NOINLINE int nested(int m)
	{
		alignas(32) unsigned char bytes[32];
		unsigned char *variable = alloca(m + 1);
		calls++;
		memset(bytes, m, sizeof bytes);
		variable[m] = bytes[m & 31];
		ordinary(bytes, m & 3);
		return m > 0 ? nested(m - 1) + variable[m] : misaligned(bytes, 32);
	}
	return nested(n) + calls * 16;
}
#else
NOINLINE static int nesting(int n)
{
	unsigned char bytes[32];
	int sum = 0;
	for (int m = n; m >= 0; m--) {
		memset(bytes, m, sizeof bytes);
		ordinary(bytes, m & 3);
		sum += m;
	}
	return sum + (n + 1) * 16;
}
#endif

// Vectors live across calls, so that they are in the frame.
AVX2 static int vectors(const int *values, int n, int a, int b, int c, int d, int e, int f)
{
	__m256i total = _mm256_set1_epi32(a + f), scale = _mm256_setr_epi32(a, b, c, d, e, f, 1, 2);
	int *copy = alloca(n * sizeof *copy);
	for (int i = 0; i + 8 <= n; i += 8) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(values + i));
		total = _mm256_add_epi32(total, _mm256_mullo_epi32(v, scale));
		copy[i] = leaf(i) + i;
		if (copy[i] & 1)
			mix(copy[i]);
	}
	return _mm256_extract_epi32(total, 3) + _mm256_extract_epi32(total, 7);
}

int main(void)
{
	alignas(64) int values[32];
	int *variable = alloca(40 * sizeof *variable);
	for (int i = 0; i < 32; i++)
		values[i] = variable[i] = i * 37 % 29;
	mix(recursive(5));
	mix(even(9));
	mix(many(values[0] + 1, 2, 3, 4, 5, 6, 7, 8, values[31] + 6));
	for (int i = 0; i < 12; i++)
		mix(early(i));
	for (int i = 0; i < 8; i++)
		mix(choose(i * 3 & 7));
	sort_with(compare);
	sort_with(sorting);
	mix(nesting(6));
	if (__builtin_cpu_supports("avx2"))
		mix(vectors(values, 32, 1, 2, 3, 4, 5, 6) != 0);
	mix(misaligned(values, 64) + (variable[3] == values[3]));
	report();
	return 6;
}

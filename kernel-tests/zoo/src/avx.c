// AVX code: 256-bit arithmetic next to branches, vzeroupper before calls and returns, gathers,
// comparisons to masks.
#include <immintrin.h>

#include "checksum.h"

#define AVX2 __attribute__((target("avx2"), noinline))

AVX2 static int sum(const int *values, int n)
{
	__m256i total = _mm256_setzero_si256();
	int i = 0;
	for (; i + 8 <= n; i += 8)
		total = _mm256_add_epi32(total, _mm256_loadu_si256((const __m256i *)(values + i)));
	int lanes[8], r = 0;
	_mm256_storeu_si256((__m256i *)lanes, total);
	for (int k = 0; k < 8; k++)
		r += lanes[k];
	for (; i < n; i++)
		r += values[i];
	return r;
}

NOINLINE static void plain(int n)
{
	if (n & 1)
		mix(n);
}

// A call between vector instructions: the compiler puts vzeroupper before it.
AVX2 static int clamp_count(const int *values, int n, int limit)
{
	__m256i bound = _mm256_set1_epi32(limit);
	int count = 0;
	for (int i = 0; i + 8 <= n; i += 8) {
		__m256i above = _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i *)(values + i)),
			bound);
		int mask = _mm256_movemask_ps(_mm256_castsi256_ps(above));
		if (mask == 0)
			continue;
		plain(mask);
		count += __builtin_popcount(mask);
	}
	return count;
}

AVX2 static float dot(const float *a, const float *b, int n)
{
	__m256 total = _mm256_setzero_ps();
	for (int i = 0; i + 8 <= n; i += 8)
		total = _mm256_add_ps(total, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
	float lanes[8], r = 0;
	_mm256_storeu_ps(lanes, total);
	for (int k = 0; k < 8; k++)
		r += lanes[k];
	return r;
}

AVX2 static int gather(const int *values, int seed)
{
	__m256i index = _mm256_setr_epi32(seed, 3, 1, 4, 1, 5, 9, 2);
	__m256i got = _mm256_i32gather_epi32(values, index, 4);
	return _mm256_testz_si256(got, got) ? 0 : _mm256_extract_epi32(got, 3);
}

int main(void)
{
	int values[45];
	float a[24], b[24];
	if (!__builtin_cpu_supports("avx2")) {
		puts("no avx2");
		return 0;
	}
	for (int i = 0; i < 45; i++)
		values[i] = i * 37 % 101;
	for (int i = 0; i < 24; i++) {
		a[i] = i;
		b[i] = 24 - i;
	}
	for (int n = 0; n < 45; n += 4) {
		mix(sum(values, n));
		mix(clamp_count(values, n, 60 + n));
		mix(gather(values, n));
	}
	mix((unsigned)dot(a, b, 24));
	report();
	return 0;
}

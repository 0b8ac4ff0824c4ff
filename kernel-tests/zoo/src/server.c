// Works in rounds, one for each line of its input, and waits in between, so that a tracer can come
// and go.
// A main thread does vector arithmetic, two workers wait for it in turn. Prints the checksum after
// each round.
#include <immintrin.h>
#include <pthread.h>
#include <unistd.h>

#include "checksum.h"

enum { WORKERS = 2, VALUES = 32 };

struct worker {
	pthread_t thread;
	int request[2], answer[2];
	int number;
};

NOINLINE static int collatz(int n)
{
	int steps = 0;
	for (; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

NOINLINE static int depth(int n) { return n < 2 ? 1 : depth(n - 1) + depth(n - 2) % 3; }

static void *serve(void *argument)
{
	struct worker *w = argument;
	char c;
	while (read(w->request[0], &c, 1) == 1) {
		for (int i = 1; i < 8; i++)
			mix(collatz(i + c) + w->number);
		mix(depth(8 + w->number));
		if (write(w->answer[1], &c, 1) != 1)
			break;
	}
	return 0;
}

__attribute__((target("avx2"), noinline)) static int dot(const int *a, int factor)
{
	__m256i total = _mm256_setzero_si256(), f = _mm256_set1_epi32(factor);
	for (int i = 0; i < VALUES; i += 8)
		total = _mm256_add_epi32(total,
			_mm256_mullo_epi32(f, _mm256_loadu_si256((const __m256i *)(a + i))));
	int lanes[8], sum = 0;
	_mm256_storeu_si256((__m256i *)lanes, total);
	for (int i = 0; i < 8; i++)
		sum += lanes[i];
	return sum;
}

NOINLINE static void serve_round(struct worker *workers, char c)
{
	int values[VALUES];
	for (int i = 0; i < VALUES; i++)
		values[i] = collatz(i + c);
	for (int i = 0; i < 8; i++)
		mix(__builtin_cpu_supports("avx2") ? dot(values, i) : values[i]);
	for (int i = 0; i < WORKERS; i++)
		if (write(workers[i].request[1], &c, 1) != 1 || read(workers[i].answer[0], &c, 1) != 1)
			_exit(9);
}

int main(void)
{
	struct worker workers[WORKERS];
	for (int i = 0; i < WORKERS; i++) {
		workers[i].number = i;
		if (pipe(workers[i].request) || pipe(workers[i].answer))
			return 9;
		pthread_create(&workers[i].thread, 0, serve, &workers[i]);
	}
	char c;
	while (read(0, &c, 1) == 1) {
		if (c == '\n') {
			report();
			fflush(stdout);
		} else {
			serve_round(workers, c);
		}
	}
	for (int i = 0; i < WORKERS; i++) {
		close(workers[i].request[1]);
		pthread_join(workers[i].thread, 0);
	}
	report();
	return 4;
}

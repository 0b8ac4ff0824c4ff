// Eight threads with different work each and no shared data; some return, some call pthread_exit,
// one starts another.
#include <pthread.h>
#include <stdlib.h>

#include "checksum.h"

enum { THREADS = 8 };

typedef struct {
	int id;
	unsigned result;
} job;

static __thread unsigned local;

NOINLINE static unsigned step(unsigned x) { return x & 1 ? x * 3 + 1 : x / 2; }

NOINLINE static unsigned chain(unsigned x)
{
	unsigned length = 0;
	for (; x != 1; x = step(x))
		length++;
	return length;
}

static int by_chain(const void *a, const void *b)
{
	local++;
	return (int)chain(*(const unsigned *)a) - (int)chain(*(const unsigned *)b);
}

NOINLINE static void leave(job *j)
{
	j->result = local * 5;
	pthread_exit(j);
}

NOINLINE static unsigned recursive(unsigned n)
{
	return n < 2 ? n : recursive(n - 1) + recursive(n - 2);
}

static void *work(void *argument)
{
	job *j = argument;
	local = j->id;
	for (int i = 1; i <= j->id + 2; i++)
		local += chain(i * 3);
	if (j->id % 3 == 0) {
		unsigned values[] = {9, 7, 5, 3, 2, 6};
		qsort(values, 6, sizeof *values, by_chain);
		local += values[j->id % 6];
	}
	if (j->id % 4 == 1)
		leave(j);
	j->result = local + recursive(j->id);
	return j;
}

static void *starter(void *argument)
{
	pthread_t inner;
	job j = {11, 0};
	pthread_create(&inner, 0, work, &j);
	pthread_join(inner, 0);
	*(unsigned *)argument = j.result;
	return 0;
}

int main(void)
{
	pthread_t threads[THREADS];
	job jobs[THREADS];
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (job){i, 0};
		pthread_create(&threads[i], 0, work, &jobs[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		mix(jobs[i].result);
	}
	unsigned nested;
	pthread_create(&threads[0], 0, starter, &nested);
	pthread_join(threads[0], 0);
	mix(nested);
	report();
	return 0;
}

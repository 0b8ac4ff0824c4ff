// Memory that others write while the routines race_* read it: threads, another process, or the file.
// What each load has read is kept, whatever becomes of it in a register, and printed at the end:
// where it is kept, and what it was.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { MOST = 4, ROUNDS = 1500, PAGE = 4096 };

// What threads share, each a cache line apart.
struct shared {
	_Alignas(64) uint64_t plain, locked, lock, added, swapped, ored;
};
static struct shared here;
// What was read: by thread, round and load.
static uint64_t saw[MOST][ROUNDS][8];

// The sum keeps a bit of each.
NOINLINE static uint64_t race_reads(volatile uint64_t *p, uint64_t *seen, uint64_t sum)
{
	for (int i = 0; i < 3; i++) {
		uint64_t v = p[i];
		seen[i] = v;
		sum += v & 1;
	}
	return sum;
}

NOINLINE static uint64_t race_sum(volatile uint64_t *p, uint64_t *seen, uint64_t sum)
{
	uint64_t v = *p;
	*seen = v;
	return sum + v;
}

NOINLINE static uint64_t race_adds(volatile struct shared *s, uint64_t *seen, uint64_t sum)
{
	uint64_t v = s->plain;
	s->plain = v + 1;
	seen[0] = v;
	v = __atomic_fetch_add(&s->added, 3, __ATOMIC_RELAXED);
	seen[1] = v;
	sum += v & 1;
	v = __atomic_exchange_n(&s->swapped, sum, __ATOMIC_RELAXED);
	seen[2] = v;
	sum ^= v & 1;
	v = s->ored;
	while (!__atomic_compare_exchange_n(&s->ored, &v, v * 5 + 1, 0, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED))
		;
	seen[3] = v;
	__atomic_fetch_sub(&s->added, 1, __ATOMIC_RELAXED);
	return sum + (v & 1);
}

NOINLINE static uint64_t race_locked(volatile struct shared *s, uint64_t *seen, uint64_t sum)
{
	while (__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	uint64_t v = s->locked;
	s->locked = v + 1;
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
	seen[0] = v;
	return sum + (v & 3);
}

static void *thread(void *p)
{
	uint64_t(*seen)[8] = p, sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		sum = race_adds(&here, seen[i], sum);
		sum = race_locked(&here, seen[i] + 4, sum);
		sum = race_sum(&here.plain, seen[i] + 5, sum);
	}
	return (void *)sum;
}

static void threads(int n)
{
	pthread_t all[MOST];
	for (int i = 1; i < n; i++)
		pthread_create(&all[i], 0, thread, saw[i]);
	thread(saw[0]);
	for (int i = 1; i < n; i++)
		pthread_join(all[i], 0);
}

// Another process writes what is mapped read-only here; own: it rewrites the file, and the mapping
// is this process's own.
static void other(int own)
{
	int fd = memfd_create("race", 0);
	if (fd < 0 || ftruncate(fd, PAGE))
		exit(1);
	uint64_t *p = mmap(0, PAGE, PROT_READ, own ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	pid_t child = fork();
	if (child == 0) {
		volatile uint64_t *q = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		for (uint64_t i = 0;; i++) {
			if (own)
				pwrite(fd, (uint64_t[]){i, i + 1, i + 2}, 24, 0);
			else
				q[i % 3] = i;
		}
	}
	while (((volatile uint64_t *)p)[1] == 0)
		sched_yield(); // until it writes
	uint64_t sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		sum = race_reads(p, saw[0][i], sum);
		sum = race_sum(p, saw[0][i] + 5, sum);
	}
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "process") || !strcmp(what, "file"))
		other(*what == 'f');
	else
		threads(atoi(what));
	for (int i = 0; i < MOST; i++)
		for (int k = 0; k < ROUNDS; k++)
			for (int j = 0; j < 8; j++)
				printf("%lx %lx\n", (long)&saw[i][k][j], saw[i][k][j]);
	return 0;
}

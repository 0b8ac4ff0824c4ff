// Ends of threads: pthread_once, destructors of thread-specific data, cancellation, a system call
// of their own, exit with threads alive.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "checksum.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t never, ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static unsigned destroyed;

static void destroy(void *value)
{
	unsigned n = *(unsigned *)value;
	while (n) {
		destroyed += n & 1;
		n >>= 1;
	}
}

static void initialise(void)
{
	pthread_key_create(&key, destroy);
	mix(42);
}

NOINLINE static unsigned depth_first(unsigned n, unsigned *cell)
{
	if (n == 0) {
		pthread_setspecific(key, cell);
		if (*cell)
			pthread_exit(0);
	}
	return n == 0 ? 0 : depth_first(n - 1, cell) + *cell;
}

static void *exits_deep(void *cell)
{
	pthread_once(&once, initialise);
	depth_first(4, cell);
	return 0;
}

static void clean_up(void *argument) { *(unsigned *)argument += 100; }

static void *waits(void *argument)
{
	pthread_once(&once, initialise);
	pthread_cleanup_push(clean_up, argument);
	sem_wait(&never); // until it is cancelled
	pthread_cleanup_pop(0);
	return 0;
}

static void *sleeps(void *argument)
{
	pthread_mutex_lock(&mutex);
	sem_post(&ready);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
	return argument;
}

static void *ends_at_once(void *argument)
{
	destroyed += *(unsigned *)argument;
	__asm__ volatile("syscall" : : "a"(60), "D"(0L) : "memory");
	return argument;
}

int main(void)
{
	pthread_t thread;
	unsigned cell = 29, waited = 3;
	sem_init(&never, 0, 0);
	sem_init(&ready, 0, 0);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, 0, exits_deep, &cell);
		pthread_join(thread, 0);
		mix(destroyed);
		cell += 11;
	}
	pthread_create(&thread, 0, ends_at_once, &cell);
	pthread_join(thread, 0);
	mix(destroyed);
	pthread_create(&thread, 0, waits, &waited);
	pthread_cancel(thread);
	pthread_join(thread, 0);
	mix(waited);
	pthread_create(&thread, 0, sleeps, 0);
	sem_wait(&ready);
	pthread_mutex_lock(&mutex); // once the thread is inside pthread_cond_wait
	report();
	exit(6);
}

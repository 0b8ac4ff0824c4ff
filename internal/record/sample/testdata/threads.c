// Has threads that work for 5 ms each, one after the other.
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned sink;

static void *work(void *ignored)
{
	struct timespec t;
	unsigned x = 1;
	for (;;) {
		for (int i = 0; i < 500000; i++)
			x = x * 1664525 + 1013904223;
		sink = x;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		if (t.tv_nsec > 5000000 || t.tv_sec)
			return 0;
	}
}

int main(void)
{
	alarm(120);
	puts("begun");
	fflush(stdout);
	for (;;) {
		pthread_t t;
		pthread_create(&t, 0, work, 0);
		pthread_join(t, 0);
	}
}

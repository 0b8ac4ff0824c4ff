#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
#include "phases.h"
static void *work(void *arg) {
	long which = (long)arg, sum = 0;
	for (long i = 0; i < 50000; i++) {
		switch ((i + which) % 7) {
		case 0: sum += i; break;
		case 1: sum -= 1; break;
		case 2: sum ^= 3; break;
		case 9: sum = 0; break;
		default: sum++;
		}
		if (which == 2 && i == 40000)
			sum += 5;
		if (which == 9)
			sum += 7;
	}
	pthread_mutex_lock(&lock);
	total += sum;
	pthread_mutex_unlock(&lock);
	return NULL;
}
static int run(long threads) {
	pthread_t list[4];
	for (long i = 0; i < threads; i++)
		if (pthread_create(&list[i], NULL, work, (void *)i))
			abort();
	for (long i = 0; i < threads; i++)
		pthread_join(list[i], NULL);
	return threads > 3 ? 1 : 0;
}
int main(void) {
	int n = run(1);
	phase();
	n += run(4);
	printf("%ld %d\n", total, n);
	return 0;
}

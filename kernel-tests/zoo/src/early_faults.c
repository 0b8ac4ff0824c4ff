// A thread faults in a function of the library before its first event, when the first thread has
// long come to wait.
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"

NOINLINE static long length(const char *text)
{
	long n = strlen(text);
	mix(n > 3 ? 7 : 5);
	return n;
}

static void *measure(void *text)
{
	long n = length(text);
	mix(n > 4 ? 17 : 19);
	return 0;
}

NOINLINE static long late_length(const char *text)
{
	long n = strlen(text);
	mix(n > 6 ? 37 : 35);
	return n;
}

static void measure_later(union sigval text)
{
	long n = late_length(text.sival_ptr);
	mix(n > 4 ? 27 : 29);
}

int main(int argc, char **argv)
{
	static char *volatile texts[] = {"text", "a text"};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = measure_later,
		.sigev_value.sival_ptr = (char *)8};
	struct itimerspec soon = {.it_value.tv_nsec = 500 * 1000 * 1000};
	timer_t timer;

	mix(length(argv[argc - 1]) > 0);
	report();
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		if (pthread_create(&thread, 0, measure, texts[i]) || pthread_join(thread, 0))
			return 1;
	}
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &soon, 0))
		return 2;
	pause();
	return 0;
}

/* Preloaded, it has what differs from run to run by its nature be the same: numbers of processes,
 * and the time. */
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

enum { NOW = 1000000000, SELF = 4242, PARENT = 4000 };

pid_t getpid(void)
{
	return SELF;
}
pid_t getppid(void)
{
	return PARENT;
}
pid_t getpgrp(void)
{
	return SELF;
}
time_t time(time_t *to)
{
	if (to)
		*to = NOW;
	return NOW;
}
int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
	to->tv_sec = NOW;
	to->tv_usec = 0;
	return 0;
}

// A timer signal that arrives anywhere: the handler counts and calls; the interrupted work is a
// fixed amount.
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "checksum.h"

static volatile sig_atomic_t ticks;

NOINLINE static int odd_tick(int n) { return n & 1; }

static void on_timer(int sig)
{
	(void)sig;
	if (odd_tick(ticks))
		ticks = ticks + 3;
	else
		ticks = ticks + 1;
}

NOINLINE static unsigned step(unsigned x)
{
	if (x & 1)
		return x * 3 + 1;
	return x >> 1;
}

NOINLINE static unsigned work(int rounds)
{
	unsigned r = 0;
	for (int i = 1; i <= rounds; i++)
		for (unsigned x = i; x != 1; x = step(x))
			r += x;
	return r;
}

static void every(int which, long microseconds)
{
	struct timeval t = {microseconds / 1000000, microseconds % 1000000};
	struct itimerval interval = {t, t};
	setitimer(which, &interval, 0);
}

// The time that a handler takes many times over, however slow each instruction is made.
static long patience(void)
{
	struct timespec began, ended;
	clock_gettime(CLOCK_MONOTONIC, &began);
	mix(work(5));
	clock_gettime(CLOCK_MONOTONIC, &ended);
	return ((ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000) / 2;
}

int main(void)
{
	long rest = patience();
	signal(SIGALRM, on_timer);
	signal(SIGVTALRM, on_timer);
	every(ITIMER_REAL, 1000 + rest);
	every(ITIMER_VIRTUAL, 4000 + rest);
	mix(work(60));
	every(ITIMER_VIRTUAL, 0);
	pause(); // at least one signal arrives, however fast the machine is
	every(ITIMER_REAL, 0);
	report();
	return ticks > 0 ? 0 : 1;
}

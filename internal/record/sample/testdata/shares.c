// Spends CPU time in parts that it measures by its own clock: two routines, 70 and 30, a library,
// code made at run time, the kernel. At SIGUSR1 it prints what it has spent in each, in seconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static void ask(int s) { asked = 1; }

static volatile double sink;

__attribute__((noinline)) unsigned seven(unsigned n)
{
	unsigned x = n;
	for (unsigned i = 0; i < n * 7; i++)
		asm volatile("" : "+r"(x));
	return x;
}

__attribute__((noinline)) unsigned three(unsigned n)
{
	unsigned x = n;
	for (unsigned i = 0; i < n * 3; i++)
		asm volatile("" : "+r"(x));
	return x;
}

__attribute__((noinline)) double waves(unsigned n)
{
	double x = 0;
	for (unsigned i = 0; i < n; i++)
		x += sin(x + i);
	return x;
}

static char buffer[1 << 20];

static unsigned consume(int zero)
{
	for (int i = 0; i < 20; i++)
		if (read(zero, buffer, sizeof buffer) < 0)
			return 1;
	return 0;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

// A part takes some milliseconds: in one that takes much more a virtual machine has stood still,
// its timers with it.
static int stood(double seconds)
{
	return seconds > 0.05;
}

int main(void)
{
	// mov ecx, edi; loop: dec ecx; jnz loop; ret
	static const unsigned char code[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	double spent[5] = {0};
	char name[64];
	int zero = open("/dev/zero", O_RDONLY);
	unsigned char *jit = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(jit, code, sizeof code);
	snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(name, "w");
	fprintf(map, "%lx %zx made at run time\n", (unsigned long)jit, sizeof code);
	fclose(map);
	signal(SIGUSR1, ask);
	alarm(120);
	puts("begun");
	fflush(stdout);
	for (unsigned x = 1;;) {
		// Rounds differ in length by chance: a clock's ticks are to find no part of them more often.
		unsigned part = 50 + rand() % 101;
		double t = now(), u;
#define PART(i, what) what, u = now(), spent[i] += stood(u - t) ? 0 : u - t, t = u
		PART(0, x += seven(4000 * part));
		PART(1, x += three(4000 * part));
		PART(2, sink += waves(300 * part));
		PART(3, ((void (*)(unsigned))jit)(20000 * part));
		PART(4, x += consume(zero));
		if (asked) {
			asked = 0;
			printf("%f %f %f %f %f\n", spent[0], spent[1], spent[2], spent[3], spent[4]);
			fflush(stdout);
		}
	}
}

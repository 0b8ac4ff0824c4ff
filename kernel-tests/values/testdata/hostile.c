// Memory that changes, or cannot be read, where nothing of the routines hostile_* shows it: the one
// that the argument names prints what it has computed.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { PAGE = 4096, PAGES = 16 };

static volatile uint32_t *guarded;
static volatile uint32_t changed = 1;
static sigjmp_buf out;
static int jumps;

static uint8_t *map(int fd)
{
	void *p = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE,
		fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		exit(1);
	return p;
}

// The same memory at two addresses.
NOINLINE static uint32_t hostile_alias(volatile uint32_t *a, volatile uint32_t *b, uint32_t n)
{
	uint32_t h = 1;
	for (uint32_t i = 0; i < n; i++) {
		a[i] = i * 7 + h;
		h = h * 31 + b[i];
		b[i] ^= h;
		if (a[i] & 1)
			h += a[i];
	}
	return h;
}

// A mapped file that the kernel writes.
NOINLINE static uint32_t hostile_file(int fd, volatile uint32_t *p, uint32_t n)
{
	uint32_t h = 1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t x = p[i] + h;
		if (pwrite(fd, &x, 4, 4 * (i + 1)) != 4)
			exit(1);
		h = h * 31 + p[i + 1];
	}
	return h;
}

// Pages that are not there yet, and such as are gone.
NOINLINE static uint32_t hostile_absent(volatile uint8_t *p)
{
	uint32_t h = 1;
	for (int i = 0; i < PAGES; i++) {
		h = h * 31 + p[i * PAGE + 8];
		p[i * PAGE + 8] = h;
		h ^= p[i * PAGE + 8];
	}
	return h;
}

// A fault amid a stretch, whose handler writes what has been read before.
NOINLINE static uint32_t hostile_fault(volatile uint32_t *p, uint32_t seed)
{
	uint32_t before = changed * seed;
	uint32_t x = *p;
	uint32_t after = changed;
	return before + 31 * x + 7 * after;
}

NOINLINE static uint32_t hostile_jump(volatile uint32_t *p, uint32_t seed)
{
	uint32_t h = seed;
	for (int i = 0; i < 3; i++) {
		h = h * 31 + changed;
		if (!sigsetjmp(out, 1))
			h += *p;
		h += changed;
	}
	return h;
}

NOINLINE static uint32_t hostile_fork(volatile uint32_t *p, uint32_t n)
{
	uint32_t h = 1;
	for (uint32_t i = 0; i < n; i++) {
		p[i] = i + h;
		pid_t child = fork();
		if (child == 0) {
			p[i] = 77;
			_exit(p[i] & 1);
		}
		int status;
		waitpid(child, &status, 0);
		h = h * 31 + p[i] + (status != 0);
	}
	return h;
}

static void on_fault(int number)
{
	(void)number;
	changed = changed * 3 + 1;
	if (jumps)
		siglongjmp(out, 1);
	mprotect((void *)guarded, PAGE, PROT_READ | PROT_WRITE);
	*guarded = 1234 + changed;
}

static void twice(int shown)
{
	int fd = memfd_create("hostile", 0);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE))
		exit(1);
	uint8_t *a = map(fd), *b = map(fd);
	if (shown)
		printf("%08x\n", hostile_alias((void *)a, (void *)b, 200));
	else
		printf("%08x\n", hostile_file(fd, (void *)a, 100));
}

static void faults(int jump)
{
	struct sigaction action = {.sa_handler = on_fault};
	sigaction(SIGSEGV, &action, 0);
	guarded = (void *)map(-1);
	for (int i = 1; i < 20; i++) {
		mprotect((void *)guarded, PAGE, PROT_NONE);
		jumps = jump;
		printf("%08x\n", jump ? hostile_jump(guarded, i) : hostile_fault(guarded, i));
	}
}

int main(int argc, char **argv)
{
	uint8_t *p = map(-1);
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "alias") || !strcmp(what, "file"))
		twice(*what == 'a');
	if (!strcmp(what, "absent")) {
		printf("%08x\n", hostile_absent(p));
		memset(p, 9, PAGES * PAGE);
		madvise(p, PAGES * PAGE, MADV_DONTNEED);
		printf("%08x\n", hostile_absent(p));
	}
	if (!strcmp(what, "fault") || !strcmp(what, "jump"))
		faults(*what == 'j');
	if (!strcmp(what, "fork"))
		printf("%08x\n", hostile_fork((void *)p, 10));
	return 0;
}

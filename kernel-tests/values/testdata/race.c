// Memory that others write while the routines race_* read it: threads, a process, by the file,
// a signal's handler, or the kernel, which writes a thread's area of restartable sequences.
// What each load has read is kept, whatever becomes of it in a register, and printed at the end:
// where it is kept, and what it was.
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { MOST = 4, ROUNDS = 1500, PAGE = 4096 };

// What threads share, each a cache line apart.
struct shared {
	_Alignas(64) uint64_t plain, locked, lock, added, swapped, ored;
};
static struct shared here;
static uint8_t open_gate;
// What was read: by thread, round and load.
static uint64_t saw[MOST][ROUNDS][8];

// Others write what p leads to while the gate is read. Of what is read the sum keeps a bit.
NOINLINE static uint64_t race_reads(
	volatile uint64_t *p, volatile uint8_t *gate, uint64_t *seen, uint64_t sum)
{
	uint64_t v = p[0];
	seen[0] = v;
	sum += v & 1;
	sum += *gate;
	v = p[0];
	seen[1] = v;
	sum ^= v & 1;
	v = p[1];
	seen[2] = v;
	return sum + (v & 1);
}

// The sum keeps all of it.
NOINLINE static uint64_t race_sum(
	volatile uint64_t *p, volatile uint8_t *gate, uint64_t *seen, uint64_t sum)
{
	sum += *gate;
	uint64_t v = *p;
	*seen = v;
	return sum + v;
}

// Behind its last hit nothing is traced any more.
NOINLINE static uint64_t race_ends(
	volatile uint64_t *p, volatile uint8_t *gate, uint64_t *seen, uint64_t sum)
{
	while (sum & 3)
		sum = sum / 2 + seen[0];
	sum += *gate;
	uint64_t v = *p;
	seen[0] = v;
	return sum + (v & 1);
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
		sum = race_sum(&here.plain, &open_gate, seen[i] + 5, sum);
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

static volatile int found; // a thread that is alike

// Of threads whose numbers are alike in their last ten bits, one has the kernel's memory for values.
static void *alike(void *p)
{
	if ((gettid() - getpid()) % 1024)
		return p;
	found = 1;
	return thread(p);
}

static void slots(void)
{
	pthread_t t;
	thread(saw[0]);
	for (int i = 0; i < 20000 && !found; i++) { // others may take the number that is looked for
		pthread_create(&t, 0, alike, saw[1]);
		pthread_join(t, 0);
	}
}

// What a writer needs: it writes, and then has the gate be there.
static int gates;
static uint8_t *gate;
static uint64_t *written;
static int file = -1; // it is written, in place of that
static pid_t signaled;  // a handler of this process writes, in place of all
static pid_t moved;     // this process goes to another processor, in place of all

// Moves a process to the next processor that this one may have.
static void move(pid_t who)
{
	static cpu_set_t all, one;
	static int at;
	if (!CPU_COUNT(&all))
		sched_getaffinity(0, sizeof all, &all);
	do
		at = (at + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(at, &all));
	CPU_ZERO(&one);
	CPU_SET(at, &one);
	sched_setaffinity(who, sizeof one, &one);
}

static void on_signal(int number)
{
	static uint64_t i;
	(void)number;
	i += 2;
	here.plain = i;
	(&here.plain)[1] = i + 1;
}

static void *writer(void *p)
{
	struct uffd_msg m;
	for (uint64_t i = 2; read(gates, &m, sizeof m) == sizeof m; i += 2) {
		struct uffdio_zeropage there = {{(long)gate, PAGE}, 0, 0};
		uint64_t words[] = {i, i + 1};
		if (file >= 0 && pwrite(file, words, sizeof words, 0) != sizeof words)
			exit(1);
		if (signaled)
			kill(signaled, SIGUSR1);
		else if (moved)
			move(moved);
		else if (file < 0)
			memcpy(written, words, sizeof words);
		ioctl(gates, UFFDIO_ZEROPAGE, &there);
	}
	return p;
}

static void *map(int fd, int prot, int flags)
{
	void *p = mmap(0, PAGE, prot, flags, fd, 0);
	if (p == MAP_FAILED)
		exit(1);
	return p;
}

// A thread, or a process, writes between two loads, each time: to memory that is mapped read-only
// here, or to a file of which this process has a mapping of its own.
static int written_between(const char *who)
{
	int fd = memfd_create("race", 0), own = !strcmp(who, "file");
	pid_t child = 0;
	pthread_t t;
	struct uffdio_api api = {UFFD_API, 0, 0};
	gates = syscall(SYS_userfaultfd, 0);
	gate = map(-1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	struct uffdio_register all = {{(long)gate, PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
	if (!strcmp(who, "sequences") && (!__rseq_size || sysconf(_SC_NPROCESSORS_ONLN) < 2))
		return 78;
	if (gates < 0 || ioctl(gates, UFFDIO_API, &api) || ioctl(gates, UFFDIO_REGISTER, &all))
		return 77;
	if (fd < 0 || ftruncate(fd, PAGE))
		return 1;
	uint64_t *p = map(fd, PROT_READ, own ? MAP_PRIVATE : MAP_SHARED);
	if (!strcmp(who, "signal")) {
		p = (uint64_t *)&here;
		signal(SIGUSR1, on_signal);
		signaled = getpid();
	}
	if (!strcmp(who, "sequences")) {
		p = (uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset);
		moved = getpid();
	}
	if (!strcmp(who, "thread")) {
		p = written = (uint64_t *)&here;
		pthread_create(&t, 0, writer, 0);
	} else if (!(child = fork())) {
		if (own)
			file = fd;
		else if (!signaled && !moved)
			written = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
		writer(0);
	}
	uint64_t sum = 0;
	for (int i = 0; i < ROUNDS; i++) {
		madvise(gate, PAGE, MADV_DONTNEED);
		sum = race_reads(p, gate, saw[0][i], sum);
		if (i % 16)
			continue;
		madvise(gate, PAGE, MADV_DONTNEED);
		sum = race_sum(p, gate, saw[0][i] + 5, sum);
	}
	if (signaled) {
		madvise(gate, PAGE, MADV_DONTNEED);
		race_ends(p, gate, saw[0][0] + 6, sum);
	}
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, 0, 0);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = atoi(what), failed = 0;
	if (n)
		threads(n);
	else if (!strcmp(what, "slots"))
		slots();
	else
		failed = written_between(what);
	if (failed)
		return failed;
	for (int i = 0; i < MOST; i++)
		for (int k = 0; k < ROUNDS; k++)
			for (int j = 0; j < 8; j++)
				printf("%lx %lx\n", (long)&saw[i][k][j], saw[i][k][j]);
	return 0;
}

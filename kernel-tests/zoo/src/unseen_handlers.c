// Handlers that are left out, for a breakpoint in them, jump out of what made no event, end its
// thread there, or mend a fault.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksum.h"

static sigjmp_buf back;
static volatile int *volatile nowhere;
static volatile int parts, stops;
static volatile int *page;

static void jump_back(int number)
{
	if (stops)
		__asm__ volatile("int3");
	siglongjmp(back, number);
}

static void unlock(int number)
{
	if (stops)
		__asm__ volatile("int3");
	mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
	parts += number;
}

static void end_thread(int number)
{
	if (stops)
		__asm__ volatile("int3");
	syscall(SYS_exit, number);
}

// A handler that is traced ends the thread before this has made an event.
static void count_and_end(int number)
{
	for (int i = 0; i < 4; i++)
		mix(number + i);
	syscall(SYS_exit, 0);
}

NOINLINE static void fault(int n)
{
	parts += n;
	*nowhere = n;
	parts++;
}

NOINLINE static void fault_behind_a_call(int n)
{
	parts ^= getppid() == 0;
	fault(n);
	parts += 2;
}

NOINLINE static void fault_in_a_callee(int n)
{
	if (n & 1)
		parts += 3;
	fault(n);
	parts -= 3;
}

static int fault_if_equal(const void *key, const void *element)
{
	parts += 5;
	if (*(const int *)key == *(const int *)element)
		*nowhere = 1;
	return *(const int *)key - *(const int *)element;
}

// What is called back makes no event before it faults, and nothing lies between one call of the
// library and the next.
NOINLINE static void fault_called_back(int n)
{
	int list[] = {n & 1, n, 90};
	parts += getppid() == 0;
	bsearch(&n, list, 3, sizeof *list, fault_if_equal);
	getppid();
}

static void note(int n) { parts += n; }
static void (*volatile noting)(int) = note;

// The next call lies ahead, and is not come to.
NOINLINE static void fault_before_a_call(int n)
{
	*nowhere = n;
	parts += 1;
	parts ^= 6;
	noting(n);
	getppid();
}

// The instruction that faults runs again.
NOINLINE static void fault_and_go_on(int n)
{
	mprotect((void *)page, 4096, PROT_NONE);
	page[n] += n;
	parts += page[n];
}

static void *speak_and_fault(void *unused)
{
	for (int i = 0; i < 3; i++)
		mix(i);
	fault_in_a_callee(5);
	return unused;
}

static void *fault_at_once(void *unused)
{
	parts += 4;
	*nowhere = 1;
	parts += 5;
	return unused;
}

// The kernel lets those know who join a thread that it has ended.
static void run(void *(*begin)(void *), void (*handler)(int))
{
	pthread_t thread;
	signal(SIGSEGV, handler);
	pthread_create(&thread, 0, begin, 0);
	pthread_join(thread, 0);
	mix(parts);
}

int main(void)
{
	signal(SIGSEGV, jump_back);
	for (volatile int i = 0; i < 10; i++) {
		if (sigsetjmp(back, 1))
			mix(parts);
		else if (i % 5 == 0)
			fault_behind_a_call(i);
		else if (i % 5 == 1)
			fault_called_back(i);
		else if (i % 5 == 2)
			fault_before_a_call(i);
		else
			fault_in_a_callee(i);
	}
	page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGSEGV, unlock);
	for (int i = 0; i < 4; i++) {
		fault_and_go_on(i);
		mix(parts);
	}
	run(speak_and_fault, end_thread);
	run(fault_at_once, end_thread);
	run(fault_at_once, count_and_end);
	report();
	return 0;
}

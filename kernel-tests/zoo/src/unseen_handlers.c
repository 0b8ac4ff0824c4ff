// Handlers that are left out, for a breakpoint in them, jump out of what made no word, or end its thread there.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksum.h"

static sigjmp_buf back;
static volatile int *volatile nowhere;
static volatile int parts, stops;

static void jump_back(int number)
{
	if (stops)
		__asm__ volatile("int3");
	siglongjmp(back, number);
}

static void end_thread(int number)
{
	if (stops)
		__asm__ volatile("int3");
	syscall(SYS_exit, number);
}

// A handler that is observed ends the thread before this has made a word.
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

// The kernel tells who joins a thread that it has ended.
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
	for (volatile int i = 0; i < 6; i++) {
		if (sigsetjmp(back, 1))
			mix(parts);
		else if (i % 3)
			fault_in_a_callee(i);
		else
			fault_behind_a_call(i);
	}
	run(speak_and_fault, end_thread);
	run(fault_at_once, end_thread);
	run(fault_at_once, count_and_end);
	report();
	return 0;
}

// A thread that begins in the middle of a routine, behind a system call of its own.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checksum.h"

static _Alignas(16) char stack[1 << 16];
static volatile int running = 1;

__attribute__((used, noinline)) static void work(int n)
{
	for (int i = 0; i < n; i++)
		mix(i & 1 ? 3 : i);
}

NOINLINE static void begin(void)
{
	register long cleared __asm__("r10") = (long)&running;
	register long tls __asm__("r8") = 0;
	long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
		CLONE_CHILD_CLEARTID;
	long result;
	__asm__ volatile("syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\txor %%ebp, %%ebp\n\tmov $40, %%edi\n\tcall work\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\tsyscall\n1:"
			 : "=a"(result)
			 : "a"((long)SYS_clone), "D"(flags), "S"(stack + sizeof(stack)), "d"(0L),
			   "r"(cleared), "r"(tls)
			 : "rcx", "r11", "memory");
}

int main(void)
{
	work(300);
	begin();
	syscall(SYS_futex, &running, FUTEX_WAIT, 1, 0);
	work(100);
	report();
}

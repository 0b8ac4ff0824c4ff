// Functions of the library fault in what was called through a pointer, or back, and in calls with
// equal registers; a handler jumps out, or returns in their place.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "checksum.h"

static sigjmp_buf env;
static volatile int returns; /* so often the handler does, in the place of what has faulted */

static void on_fault(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	if (returns-- <= 0)
		siglongjmp(env, 1);
	regs[REG_RAX] = 3;
	regs[REG_RIP] = *(greg_t *)regs[REG_RSP];
	regs[REG_RSP] += 8;
}

NOINLINE long each(const char *text)
{
	long n = strlen(text);
	mix(n > 3 ? 7 : 5);
	return n;
}
static long (*volatile pointer)(const char *) = each;
NOINLINE static long once(const char *text) { return pointer(text) + 2; }

NOINLINE int compare(const void *a, const void *b)
{
	int n = strlen(*(char *const *)a);
	mix(n > 3 ? 17 : 19);
	return n - 2;
}
NOINLINE static int sort(char **list)
{
	qsort(list, 2, sizeof(*list), compare);
	return list[0] > list[1];
}

/* Three calls with the same registers. */
long three(const char *text);
__asm__(".text\n.type three, @function\n"
	"three:	.cfi_startproc\n"
	"	push	%rbx\n	.cfi_def_cfa_offset 16\n	.cfi_offset 3, -16\n"
	"	mov	%rdi, %rbx\n	call	strlen@plt\n"
	"	mov	%rbx, %rdi\n	call	strlen@plt\n"
	"	mov	%rbx, %rdi\n	call	strlen@plt\n"
	"	pop	%rbx\n	.cfi_def_cfa_offset 8\n	ret\n"
	"	.cfi_endproc\n	.size three, .-three\n");

NOINLINE static long attempt(int which, char *text)
{
	char *list[] = {text, "a"};
	if (sigsetjmp(env, 1))
		return -which;
	switch (which) {
	case 0: return once(text);
	case 1: return sort(list);
	}
	return three(text);
}

int main(void)
{
	char text[64] = "text";
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_NODEFER | SA_SIGINFO};
	sigaction(SIGSEGV, &act, 0);
	for (int i = 0; i < 18; i++) {
		returns = i % 4;
		mix(attempt(i % 3, i & 1 ? text : (char *)8));
	}
	returns = 2;
	mix(attempt(2, (char *)16));
	report();
	fflush(stdout);
	act.sa_handler = SIG_DFL;
	sigaction(SIGSEGV, &act, 0);
	return once((char *)8);
}

// Runs cases: loads a state into the processor, jumps to a case's code, stores the state.
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define CASES 1024
#define CODE 512
#define WINDOW 1024

struct state {
	uint64_t registers[16];
	uint64_t flags;
	uint32_t mxcsr, signal;
	uint64_t rip;
	uint64_t code;
	uint8_t vectors[16][32];
};

struct slot {
	struct state before, after;
	uint8_t data[2][WINDOW];
	uint8_t rest[4096 - 2 * sizeof(struct state) - 2 * WINDOW];
};

struct shared {
	uint32_t go, done; // numbers of hand-overs
	uint32_t first, count;
	uint32_t at;    // the case that runs
	uint64_t leave; // where the code of a case jumps to when it ends
	uint8_t rest[4096 - 32];
	struct slot slots[CASES];
	uint8_t code[CASES][CODE];
};

_Static_assert(sizeof(struct slot) == 4096, "a slot is a page");
_Static_assert(offsetof(struct shared, slots) == 4096, "slots begin at a page");
_Static_assert(offsetof(struct state, vectors) == 160, "the assembly knows the offsets");

#define CODE_AT 0x10000000ul
#define ARENA 0x10200000ul // two pages; the window is in the middle of them

uint64_t saved_rsp, saved_slot, saved_rdi, case_rsp, target;
static struct shared *shared;
static volatile int running;
extern char leave_case[], leave_signal[];
void run_case(struct slot *slot);

// clang-format off
__asm__(
	".text\n"
	"run_case:\n"
	"push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"mov %rsp, saved_rsp(%rip)\n mov %rdi, saved_slot(%rip)\n"
	"ldmxcsr 136(%rdi)\n"
	"lea 160(%rdi), %rax\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu \\n*32(%rax), %ymm\\n\n"
	".endr\n"
	"mov 152(%rdi), %rax\n mov %rax, target(%rip)\n"
	"push 128(%rdi)\n popfq\n"
	"mov (%rdi), %rax\n mov 8(%rdi), %rcx\n mov 16(%rdi), %rdx\n mov 24(%rdi), %rbx\n"
	"mov 32(%rdi), %rsp\n mov 40(%rdi), %rbp\n mov 48(%rdi), %rsi\n"
	"mov 64(%rdi), %r8\n mov 72(%rdi), %r9\n mov 80(%rdi), %r10\n mov 88(%rdi), %r11\n"
	"mov 96(%rdi), %r12\n mov 104(%rdi), %r13\n mov 112(%rdi), %r14\n mov 120(%rdi), %r15\n"
	"mov 56(%rdi), %rdi\n"
	"jmp *target(%rip)\n"
	"leave_case:\n"
	"mov %rsp, case_rsp(%rip)\n"
	"leave_signal:\n"
	"mov %rdi, saved_rdi(%rip)\n mov saved_slot(%rip), %rdi\n lea 672(%rdi), %rdi\n"
	"mov %rax, (%rdi)\n mov %rcx, 8(%rdi)\n mov %rdx, 16(%rdi)\n mov %rbx, 24(%rdi)\n"
	"mov %rbp, 40(%rdi)\n mov %rsi, 48(%rdi)\n"
	"mov %r8, 64(%rdi)\n mov %r9, 72(%rdi)\n mov %r10, 80(%rdi)\n mov %r11, 88(%rdi)\n"
	"mov %r12, 96(%rdi)\n mov %r13, 104(%rdi)\n mov %r14, 112(%rdi)\n mov %r15, 120(%rdi)\n"
	"mov saved_rdi(%rip), %rax\n mov %rax, 56(%rdi)\n"
	"mov case_rsp(%rip), %rax\n mov %rax, 32(%rdi)\n"
	"mov saved_rsp(%rip), %rsp\n"
	"pushfq\n pop 128(%rdi)\n cld\n"
	"stmxcsr 136(%rdi)\n"
	"lea 160(%rdi), %rax\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"vmovdqu %ymm\\n, \\n*32(%rax)\n"
	".endr\n"
	"vzeroupper\n fninit\n"
	"pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"ret\n");
// clang-format on

static void on_signal(int signal, siginfo_t *info, void *context) {
	(void)info;
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	if (!running)
		_exit(3);
	struct state *after = &((struct slot *)saved_slot)->after;
	after->signal = signal;
	after->rip = g[REG_RIP];
	case_rsp = g[REG_RSP];
	g[REG_RSP] = saved_rsp;
	g[REG_RIP] = (greg_t)leave_signal;
}

static void wait_for(uint32_t *word, uint32_t old) {
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old)
		syscall(SYS_futex, word, FUTEX_WAIT, old, NULL, NULL, 0);
}

static void restrict_calls(void) {
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
		_exit(4);
}

static void *map(size_t length, int protection, int flags, size_t offset, uint64_t at) {
	void *p = mmap((void *)at, length, protection, flags, flags & MAP_ANONYMOUS ? -1 : 3, offset);
	if (p == MAP_FAILED)
		_exit(5);
	return p;
}

static void limit(int what, rlim_t most) {
	struct rlimit r = {most, most};
	if (setrlimit(what, &r))
		_exit(6);
}

// Some virtual machines cannot go back from an interrupt to a stack pointer that is not canonical:
// the process gets SIGSEGV. What comes each time is the case's own.
static int interrupted(const struct state *after) {
	int64_t rsp = (int64_t)after->registers[4];
	return after->signal == SIGSEGV && rsp << 16 >> 16 != rsp;
}

int main(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared = map(sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);
	map(sizeof shared->code, PROT_READ | PROT_EXEC,
		MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, offsetof(struct shared, code), CODE_AT);
	map(4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, 0, ARENA - 4096);
	mprotect((void *)ARENA, 2 * 4096, PROT_READ | PROT_WRITE);
	uint8_t *window = (uint8_t *)ARENA + 4096 - WINDOW / 2;

	stack_t stack = {.ss_sp = map(1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
						0, 0), .ss_size = 1 << 16};
	sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGTRAP};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
	shared->leave = (uint64_t)leave_case;
	close(0);
	close(1);
	close(2);
	close(3);
	limit(RLIMIT_AS, 256 << 20);
	limit(RLIMIT_CPU, 3600);
	limit(RLIMIT_CORE, 0);
	restrict_calls();

	for (uint32_t hand_over = 0;; hand_over++) {
		__atomic_store_n(&shared->done, hand_over + 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &shared->done, FUTEX_WAKE, 1, NULL, NULL, 0);
		wait_for(&shared->go, hand_over);
		for (uint32_t i = shared->first; i < shared->count; i++) {
			struct slot *slot = &shared->slots[i];
			shared->at = i;
			int tries = 0;
			do {
				memcpy(window, slot->data[0], WINDOW);
				slot->after.signal = 0;
				running = 1;
				run_case(slot);
				running = 0;
				memcpy(slot->data[1], window, WINDOW);
			} while (interrupted(&slot->after) && ++tries < 4);
		}
	}
}

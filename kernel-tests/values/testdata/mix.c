// A program whose values follow from one another: what mix_one returns, and each value on the way,
// follows from its first argument alone. It reads what nobody writes, and what it has written.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t mix_table[256];
static __thread uint64_t mine[16];
static uint64_t *nowhere; // where that is to be written, if it is not null

uint64_t mix_one(uint64_t x, uint64_t *own);

__asm__(".globl mix_one\n.type mix_one,@function\nmix_one: .cfi_startproc\n"
	"  mov %rdi,%rax\n"
	"  mov $5,%ecx\n"
	"1: movzbl %al,%edx\n"
	"  lea mix_table(%rip),%r8\n"
	"  xor (%r8,%rdx,8),%rax\n"
	"  test $1,%al\n"
	"  jz 2f\n"
	"  imul $0x5851f42d,%rax,%rax\n"
	"  jmp 3f\n"
	"2: rol $13,%rax\n"
	"3: mov %rax,(%rsi,%rcx,8)\n"
	"  dec %ecx\n"
	"  jnz 1b\n"
	"  xor 8(%rsi),%rax\n"
	"  add 40(%rsi),%rax\n"
	"  ret\n"
	"  .cfi_endproc\n.size mix_one,.-mix_one\n");

__attribute__((noinline)) uint64_t mix_round(uint64_t from, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += mix_one(from + i, nowhere ? nowhere : mine);
	return sum;
}

static void *thread(void *number)
{
	return (void *)mix_round((uint64_t)number << 40, 100);
}

// threads runs so many threads at the same time.
static void threads(int n)
{
	static uint64_t number;
	pthread_t all[64];
	for (int i = 0; i < n; i++)
		pthread_create(&all[i], 0, thread, (void *)++number);
	for (int i = 0; i < n; i++)
		pthread_join(all[i], 0);
}

int main(int argc, char **argv)
{
	for (uint64_t i = 0; i < 256; i++)
		mix_table[i] = i * 0x9e3779b97f4a7c15;
	const char *how = argc > 1 ? argv[1] : "";
	if (!strcmp(how, "forever"))
		for (uint64_t n = 0;; n += 100)
			mix_round(n, 100);
	if (!strcmp(how, "threads"))
		threads(64);
	else if (!strcmp(how, "brief")) // whose numbers may be used again
		for (int i = 0; i < 25; i++)
			threads(4);
	else
		mix_round(1, 1000);
	if (!strcmp(how, "fork"))
		for (int i = 0; i < 20; i++) {
			pid_t child = fork();
			if (!child)
				_exit(mix_round(1, 20) == 0);
			int status = 1;
			if (waitpid(child, &status, 0) != child || status)
				return 9;
			mix_round(i, 20);
		}
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", "mix", (char *)0);
	if (!strcmp(how, "fault")) {
		nowhere = (uint64_t *)8;
		mix_round(5, 1);
	}
	if (!strcmp(how, "killed"))
		kill(getpid(), SIGKILL);
	return strcmp(how, "exit") ? 0 : 3;
}

// Code that changes while it runs: rewritten_one stores a constant, and main puts another into it,
// which no register shows. What was stored is printed at the end.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 200, PAGE = 4096 };
uint64_t rewritten_one(uint64_t *to, uint64_t sum);
extern char rewritten_constant[];
static uint64_t saw[ROUNDS];

__asm__(".globl rewritten_one\n.type rewritten_one,@function\nrewritten_one: .cfi_startproc\n"
	"  mov $1,%eax\n"
	".globl rewritten_constant\nrewritten_constant = . - 4\n"
	"  mov %rax,(%rdi)\n"
	"  lea 1(%rsi),%rax\n"
	"  ret\n"
	"  .cfi_endproc\n.size rewritten_one,.-rewritten_one\n");

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	(void)argv;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (argc > 1 && i % 10 == 5) {
			char *page = (char *)((uintptr_t)rewritten_constant & -PAGE);
			if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
				return 1;
			memcpy(rewritten_constant, &i, sizeof i);
			mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC);
		}
		sum = rewritten_one(&saw[i], sum);
	}
	for (int i = 0; i < ROUNDS; i++)
		printf("%lx %lx\n", (long)&saw[i], saw[i]);
	return sum != ROUNDS;
}

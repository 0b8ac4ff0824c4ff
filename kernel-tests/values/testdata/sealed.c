// Data that the loader makes read-only and that is written later all the same: sealed_one keeps a
// word of it, and no register shows the word at the next probe. What was kept is printed at the
// end.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 200, PAGE = 4096 };
uint64_t sealed_one(uint64_t *to, uint64_t sum);
extern char sealed_word[];
static uint64_t saw[ROUNDS];

__asm__(".section .data.rel.ro,\"aw\"\n.globl sealed_word\nsealed_word: .quad sealed_word\n.text\n"
	".globl sealed_one\n.type sealed_one,@function\nsealed_one: .cfi_startproc\n"
	"  mov sealed_word(%rip),%rax\n"
	"  mov %rax,(%rdi)\n"
	"  lea 1(%rsi),%rax\n"
	"  ret\n"
	"  .cfi_endproc\n.size sealed_one,.-sealed_one\n");

int main(void)
{
	uint64_t sum = 0;
	char *page = (char *)((uintptr_t)sealed_word & -PAGE);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (i % 10 == 5) {
			if (mprotect(page, PAGE, PROT_READ | PROT_WRITE))
				return 1;
			memcpy(sealed_word, &i, sizeof i);
			mprotect(page, PAGE, PROT_READ);
		}
		sum = sealed_one(&saw[i], sum);
	}
	for (int i = 0; i < ROUNDS; i++)
		printf("%lx %lx\n", (long)&saw[i], saw[i]);
	return sum != ROUNDS;
}

// A cold part begins where a routine ends that jumps there, and calls what is found not to
// return.
#include "beginend.h"

void exit(int);
__attribute__((noinline,used)) static void die(void) {
	__asm__ volatile("");
	exit(3);
}
__asm__(BEGIN(folds)
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\nja 9f\n"
	"mov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds)
	"9: folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall die\n"
	".cfi_def_cfa_offset 8\n"
	"in_cold: mov $7,%eax\nret\n.cfi_endproc\n"
	BEGIN(folded)
	"test %esi,%esi\njs in_cold\nsub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\n"
	"jz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded));
int folded(int, int), folds(int);
int main(int c, char **v) {
	return folded(c, 1) + folds(c);
}

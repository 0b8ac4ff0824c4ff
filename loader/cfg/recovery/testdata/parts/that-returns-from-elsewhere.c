// A cold part has a second entry, which returns; another routine jumps to the part with another
// frame.
#include "beginend.h"

__asm__("folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n"
	".cfi_def_cfa_offset 8\n"
	"in_cold: mov $7,%eax\nret\n.cfi_endproc\n"
	BEGIN(folded)
	"test %esi,%esi\njs in_cold\nsub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\n"
	"jz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded)
	BEGIN(folds) "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\n"
	"ja folded.cold\nmov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds));
int folded(int, int), folds(int);
int main(int c, char **v) {
	return folded(c, 1) + folds(c);
}

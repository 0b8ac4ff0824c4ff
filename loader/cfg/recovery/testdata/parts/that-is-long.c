// A cold part is longer than is looked at, and returns in the end.
#include "beginend.h"

__asm__("folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\n.rept 300\nnop\n.endr\n"
	"add $24,%rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
	BEGIN(folded) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\n"
	"add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded)
	BEGIN(folds) "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\n"
	"ja folded.cold\nmov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds));
int folded(int), folds(int);
int main(int c, char **v) {
	return folded(c) + folds(c);
}

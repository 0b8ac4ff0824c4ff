// Data leads into a part of a routine, which ends by the instruction ENDS.
#include "beginend.h"

__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\nin_cold: " ENDS
	"\n.cfi_endproc\n"
	BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\n"
	"other_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other)
	".data\n.quad in_cold\n.text\n");
int other(int);
int main(int c, char **v) {
	return other(c);
}

// A routine that does not decode jumps to the cold part of another.
#include "beginend.h"

__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\njmp other_back\n"
	".cfi_endproc\n"
	BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\n"
	"other_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other)
	BEGIN(bad) ".cfi_def_cfa_offset 16\n.byte 6\njz other.cold\nret\n" END(bad));
int other(int), bad(int);
int main(int c, char **v) {
	return other(c) + bad(c);
}

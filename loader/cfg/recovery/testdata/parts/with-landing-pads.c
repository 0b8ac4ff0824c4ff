// A routine jumps to a part of another with another frame. PADS are directives that give the
// part landing pads, or none.
#include "beginend.h"

__asm__(".section .text.unlikely,\"ax\"\nf.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\n"
	"call abort\n.cfi_endproc\n"
	"g.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 48\n" PADS "4: call abort\n"
	"5: call abort\n"
	"6:\n.cfi_endproc\n.text\n"
	BEGIN(f) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njs f.cold\njz g.cold\n"
	"add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(f)
	BEGIN(g) "sub $40,%rsp\n.cfi_adjust_cfa_offset 40\ntest %edi,%edi\njz g.cold\nadd $40,%rsp\n"
	".cfi_adjust_cfa_offset -40\nret\n" END(g)
	".section .gcc_except_table,\"a\"\n"
	"sites: .byte 255,255,1\n.uleb128 2f-1f\n"
	"1: .uleb128 4b-g.cold, 5b-4b, 5b-g.cold, 0\n"
	"2:\n.text\n");
int f(int), g(int), __gcc_personality_v0();
void *used = __gcc_personality_v0;
int main(int c, char **v) {
	return f(c) + g(c);
}

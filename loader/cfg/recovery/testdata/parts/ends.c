// Jumps to where a routine ends: behind it nothing but padding, another routine, code of which
// no unwind information tells, or the cold part of the routine; to where a cold part would be,
// in which nothing is left, and another routine begins; or to a cold part of another.
#include "beginend.h"

#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n"
#define JUMPS(name, before, after, behind) \
	__asm__(BEGIN(name) before "cmp $3,%edi\nja 9f\nmov %edi,%eax\n" after END(name) "9: " behind \
	"\n");
JUMPS(padded, PUSH, POP, ".p2align 4\nnop\n.p2align 4")
JUMPS(adjacent, PUSH, POP, "")
JUMPS(bare, "", "ret\n", ".p2align 4\nnop\n.p2align 4")
JUMPS(called, "", "ret\n", "")
JUMPS(unknown, PUSH, POP, "mov $1,%eax\npop %rbx\nret\n.p2align 4")
JUMPS(cold, PUSH, POP, "")
__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\njmp other_back\n"
	".cfi_endproc\n"
	BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\n"
	"other_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other));
#define LEADS(name, to) \
	__asm__(BEGIN(name) PUSH "cmp $3,%edi\nja " to "\nmov %edi,%eax\n" POP END(name));
LEADS(emptied, "emptied.cold")
LEADS(without, "without.cold")
LEADS(enters, "entered")
LEADS(moved, "moved.__part.1")
__asm__(".type emptied.cold,@function\nemptied.cold:\n.size emptied.cold,0\n" BEGIN(entered)
	"mov $1,%eax\nret\n" END(entered));
__asm__(".type without.cold,@function\n.type moved.__part.1,@function\n"
	".type with.cold,@function\nwithout.cold:\nmoved.__part.1:\n.size without.cold,0\n"
	".size moved.__part.1,0\n"
	"with.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_endproc\n"
	".size with.cold,5\n"
	BEGIN(with)
	"sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz with.cold\nadd $24,%rsp\n"
	".cfi_adjust_cfa_offset -24\nret\n" END(with));
LEADS(unsized, "unsized.cold")
__asm__(".type unsized.cold,@function\nunsized.cold:\n.cfi_startproc\nmov $7,%eax\npop %rbx\n"
	"ret\n.cfi_endproc\n");
LEADS(folds, "folds.cold")
__asm__(".type folds.cold,@function\n.type folded.cold,@function\nfolds.cold:\nfolded.cold:\n"
	".cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_endproc\n"
	".size folds.cold,5\n.size folded.cold,5\n"
	BEGIN(folded) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\n"
	"add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded));
LEADS(meets, "other.cold")
JUMPS(goes_on, PUSH, POP,
	".p2align 4\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n"
	"mov $7,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc")
JUMPS(into_stub, PUSH, POP,
	".cfi_startproc\n.cfi_def_cfa_offset -128\nsub $128,%rsp\n.cfi_def_cfa_offset 0\n"
	"add $128,%rsp\n.cfi_def_cfa_offset -128\npop %rbx\nret\n.cfi_endproc")
JUMPS(into_named, PUSH, POP, ".type slow,@function\n"
	"slow: mov $7,%eax\npop %rbx\nret\n.size slow,.-slow")
__asm__(".section at_end,\"ax\"\n");
JUMPS(last, PUSH, POP, "")
__asm__(".text\n");
#define TABLE(name, before, after, check, entry, targets) __asm__(BEGIN(name) before check \
	"lea 9f(%rip),%rdx\nmov %edi,%edi\nmovslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n" \
	"3: mov $1,%eax\n" after ".cfi_adjust_cfa_offset " entry "\n4: mov $2,%eax\n" after END(name) \
	"8: .p2align 4\n" \
	".section .rodata\n.p2align 2\n9: " targets "\n.text\n");
#define CHECKED "cmp $3,%edi\nja 8f\n"
TABLE(entries, PUSH, POP, CHECKED, "8", ".long 3b-9b, 8b-9b, 4b-9b, 8b-9b")
TABLE(none, PUSH, POP, CHECKED, "8", ".long 8b-9b, 8b-9b, 8b-9b, 8b-9b")
TABLE(frameless, "", "ret\n", "cmp $3,%edi\nja 4f\n", "0", ".long 3b-9b, 8b-9b, 4b-9b, 4b-9b")
int padded(int), adjacent(int), bare(int), called(int), unknown(int), cold(int),
	other(int), emptied(int), entered(int), enters(int), moved(int), without(int),
	with(int), meets(int), unsized(int), folds(int), folded(int), goes_on(int),
	into_stub(int), into_named(int), last(int), entries(int), none(int), frameless(int);
int main(int c, char **v) {
	return padded(c) + adjacent(c) + bare(c) + called(c) + unknown(c) + cold(c) + other(c) +
		emptied(c) + entered(c) + enters(c) + moved(c) + without(c) + with(c) + meets(c) +
		unsized(c) + folds(c) + folded(c) + goes_on(c) + into_stub(c) + into_named(c) + last(c) +
		entries(c) + none(c) + frameless(c);
}

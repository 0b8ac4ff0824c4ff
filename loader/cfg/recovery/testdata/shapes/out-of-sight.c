// Ways into routines that control flow does not show. MOVABS takes the eight bytes behind it
// where something decodes from there.

#define TEXT ".text\n.p2align 4\n"
#define FAR ".section .text.far,\"ax\"\n.p2align 4\n"
#define ROUTINE(name, code) IN(TEXT, name, code)
#define IN(section, name, code) \
	__asm__(section ".type " #name ",@function\n" #name ":\n.cfi_startproc\n" code \
	".cfi_endproc\n.size " #name ",.-" #name "\n");
#define BARE(name, data, code) BARE_IN(FAR, name, data, code)
#define BARE_IN(section, name, data, code) \
	__asm__(section data ".type " #name ",@function\n" #name ":\n" code ".size " #name ",.-" \
	#name "\n");
#define PUSHED "push %rbx\n.cfi_adjust_cfa_offset 8\n"
#define MOVABS ".byte 0x48, 0xb8\n"
#define LEAF(name) ROUTINE(name, "lea 3(%rdi),%eax\nret\n")
LEAF(nobodys) LEAF(behind_data) LEAF(amid_data) LEAF(named_amid_data) LEAF(behind_pointer)
BARE(bare, MOVABS, "jmp behind_data\n")
ROUTINE(over_data, "jmp 1f\n" MOVABS "1: lea named_amid_data(%rip),%rax\nret\n")
IN(FAR, over_call, "jmp 1f\n" MOVABS "1: jmp amid_data\nnop\nnop\nnop\nnop\nnop\n")
ROUTINE(anywhere, PUSHED "jmp *(%rdi)\npop %rbx\n.cfi_adjust_cfa_offset -8\njmp behind_pointer\n")
ROUTINE(halves, "lea 3(%rdi),%eax\n.Lsecond: add $1,%eax\nret\n")
ROUTINE(to_second, PUSHED "pop %rbx\njmp .Lsecond\n")
ROUTINE(quarters, "lea 3(%rdi),%eax\n.Llast: add $1,%eax\nret\n")
BARE(bare_to_last, MOVABS, "jmp .Llast\n.p2align 5\n")
ROUTINE(thirds, "lea 3(%rdi),%eax\n.Lthird: add $1,%eax\nret\n")
BARE_IN(TEXT, bare_to_third, "", "jmp .Lthird\n")
LEAF(near_data)
BARE_IN(TEXT, bare_near, MOVABS, "jmp near_data\n")
ROUTINE(moves, "lea lands(%rip),%rax\nmov %rax,(%rsp)\nret\n")
ROUTINE(jumps_to_it, "jmp moves\n")
ROUTINE(jumps_by_register, "lea jumps_to_it(%rip),%rax\njmp *%rax\n")
ROUTINE(calls_by_register, PUSHED
	"lea moves(%rip),%rax\ncall *%rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(calls_by_slot, ".globl moves\n" PUSHED
	"call *moves@GOTPCREL(%rip)\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(seems_endless, PUSHED "call jumps_to_it\nud2\n")
ROUTINE(lands, ".cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret\n")
ROUTINE(endless, PUSHED "call abort@PLT\n")
ROUTINE(plain, PUSHED "call nobodys\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(sets_directly, "jmp _setjmp@PLT\n")
ROUTINE(sets_by_slot, "jmp *_setjmp@GOTPCREL(%rip)\n")
ROUTINE(sets_by_register, "mov _setjmp@GOTPCREL(%rip),%rax\njmp *%rax\n")
ROUTINE(sets_by_two, "lea sets_by_register(%rip),%rax\njmp *%rax\n")
ROUTINE(sets_by_hidden_register, PUSHED
	"mov (%rdi),%rax\njmp *(%rax)\nmov _setjmp@GOTPCREL(%rip),%rax\npop %rbx\n"
	".cfi_adjust_cfa_offset -8\njmp *%rax\n")
ROUTINE(sets_out_of_sight, PUSHED
	"mov (%rdi),%rax\njmp *(%rax)\npop %rbx\n.cfi_adjust_cfa_offset -8\njmp _setjmp@PLT\n")
#define CALLER(name) \
	int name(void *); __attribute__((noinline)) int calls_##name(void *p) { return name(p) + 1; }
CALLER(jumps_by_register) CALLER(seems_endless) CALLER(endless) CALLER(plain) CALLER(sets_directly)
	CALLER(sets_by_slot) CALLER(sets_by_register) CALLER(sets_by_two)
	CALLER(sets_by_hidden_register) CALLER(sets_out_of_sight)
int main(int c, char **v) {
	return 0;
}

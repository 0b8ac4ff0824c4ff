// Ways into routines that control flow does not show: from code in no routine, behind data, behind
// a jump to nobody knows where, to the middle of another, and back from what moves its return
// address; setjmp by jumps to it.
#include <setjmp.h>
#include "checksum.h"

#define TEXT ".text\n.p2align 4\n"
#define FUNCTION(name, code)                                                   \
	__asm__(TEXT ".type " #name ", @function\n" #name ":\n.cfi_startproc\n" code \
		".cfi_endproc\n.size " #name ", .-" #name "\n")
#define BARE(name, data, code)                                        \
	__asm__(TEXT data ".type " #name ", @function\n" #name ":\n" code \
		".size " #name ", .-" #name "\n")
#define PUSHED ".cfi_adjust_cfa_offset 8\n"
#define POPPED ".cfi_adjust_cfa_offset -8\n"
// takes the eight bytes behind it, where something decodes from there
#define MOVABS ".byte 0x48, 0xb8\n"

NOINLINE static void leaf(unsigned value) { mix(value); }

#define ENTERED(name)                      \
	NOINLINE void name(unsigned value) \
	{                                  \
		if (value & 1)             \
			leaf(value);       \
		else                       \
			mix(3);            \
	}

ENTERED(behind_data)
BARE(from_no_routine, MOVABS, "jmp behind_data\n");
void from_no_routine(unsigned value);

ENTERED(amid_data)
FUNCTION(over_data, "push %rbx\n" PUSHED "jmp 1f\n" MOVABS "1: call amid_data\nnop\nnop\nnop\nnop\nnop\npop %rbx\n" POPPED "ret\n");
void over_data(unsigned value);

ENTERED(behind_pointer)
FUNCTION(anywhere, "push %rbx\n" PUSHED "mov place(%rip), %rax\njmp *(%rax)\n1: call behind_pointer\npop %rbx\n" POPPED "ret\n.data\n.p2align 3\nplace: .quad place + 8, 1b\n.text\n");
void anywhere(unsigned value);

unsigned halves __attribute__((visibility("hidden"))) = 1;
FUNCTION(two_halves, "add %edi, halves(%rip)\n.Lsecond_half: imul $3, halves(%rip), %eax\nmov %eax, halves(%rip)\nret\n");
// its unwind rows do not show
FUNCTION(to_second_half, "push %rbx\n" PUSHED "pop %rbx\njmp .Lsecond_half\n");
void two_halves(unsigned value);
void to_second_half(unsigned value);

FUNCTION(moves_its_return, "lea lands(%rip), %rax\nmov %rax, (%rsp)\nret\n");
FUNCTION(jumps_to_it, "jmp moves_its_return\n");
FUNCTION(seems_endless, "push %rbx\n" PUSHED "call jumps_to_it\nud2\n");
FUNCTION(lands, ".cfi_def_cfa_offset 16\npop %rbx\n" POPPED "ret\n");
void seems_endless(unsigned value);

static jmp_buf buffers[4];
FUNCTION(set_directly, "jmp _setjmp@PLT\n");
FUNCTION(set_by_slot, "jmp *_setjmp@GOTPCREL(%rip)\n");
FUNCTION(set_by_register, "mov _setjmp@GOTPCREL(%rip), %rax\njmp *%rax\n");
FUNCTION(set_out_of_sight, "mov setter(%rip), %rax\njmp *(%rax)\nud2\n1: jmp _setjmp@PLT\n.data\n.p2align 3\nsetter: .quad setter + 8, 1b\n.text\n");
int set_directly(jmp_buf) __attribute__((returns_twice));
int set_by_slot(jmp_buf) __attribute__((returns_twice));
int set_by_register(jmp_buf) __attribute__((returns_twice));
int set_out_of_sight(jmp_buf) __attribute__((returns_twice));

NOINLINE static void jump(jmp_buf to, unsigned value)
{
	if (value % 3 == 1)
		longjmp(to, value);
	leaf(value);
}

#define RETURNER(set, i)                              \
	NOINLINE static unsigned returns_##set(unsigned value) \
	{                                             \
		volatile unsigned n = 0;              \
		int k = set(buffers[i]);              \
		n++;                                  \
		if (k)                                \
			leaf(k);                      \
		for (unsigned j = 0; j < n; j++)      \
			leaf(j);                      \
		jump(buffers[i], value + n);          \
		return n;                             \
	}
RETURNER(set_directly, 0)
RETURNER(set_by_slot, 1)
RETURNER(set_by_register, 2)
RETURNER(set_out_of_sight, 3)

NOINLINE static void often(unsigned value)
{
	for (unsigned k = 0; k < 80; k++) {
		behind_data(k);
		amid_data(k);
		behind_pointer(k);
		if (k % 16 == 0)
			two_halves(k);
		leaf(value + k);
	}
}

NOINLINE static void once(unsigned value)
{
	mix(4);
	seems_endless(value);
	leaf(value);
}

int main(void)
{
	for (unsigned i = 0; i < 12; i++) {
		often(i);
		from_no_routine(i);
		over_data(i);
		anywhere(i);
		to_second_half(i);
		once(i);
		mix(returns_set_directly(i));
		mix(returns_set_by_slot(i));
		mix(returns_set_by_register(i));
		mix(returns_set_out_of_sight(i));
	}
	mix(halves);
	report();
	return 0;
}

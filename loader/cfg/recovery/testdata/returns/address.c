// Functions in assembly that do more with their return address than to return: with and without
// unwind information.

#define ROUTINE(name, code) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" code \
	".cfi_endproc\n.size " #name ",.-" #name "\n");
#define BARE(name, code) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n" code ".size " #name ",.-" \
	#name "\n");
#define MOVED ".cfi_adjust_cfa_offset 8\n"
#define BACK ".cfi_adjust_cfa_offset -8\n"
ROUTINE(saves_pushing, "pushq (%rsp)\n" MOVED "popq 56(%rdi)\n" BACK "xor %eax,%eax\nret\n")
ROUTINE(adds, "mov (%rsp),%rsi\nmov (%rsi),%eax\naddq $4,(%rsp)\nret\n")
ROUTINE(jumps, "pop %rsi\n" BACK "mov (%rsi),%eax\nadd $4,%rsi\njmp *%rsi\n")
ROUTINE(stores, "mov (%rsp),%rsi\nadd $4,%rsi\nmov %rsi,(%rsp)\nret\n")
ROUTINE(pushes, "pop %rsi\n" BACK "add $4,%rsi\npush %rsi\n" MOVED "ret\n")
ROUTINE(tails, "jmp bare_jumps\n")
ROUTINE(drops, "test %rdi,%rdi\njz 1f\nadd $8,%rsp\n" BACK "ret\n" MOVED "1: ret\n")
ROUTINE(pushes_another, "push %rdi\n" MOVED "ret\n" BACK)
ROUTINE(restores, "pop %rsi\n" BACK "mov $39,%eax\nsyscall\npush %rsi\n" MOVED "ret\n")
ROUTINE(drops_without_rows, "test %rdi,%rdi\njz 1f\nadd $8,%rsp\nret\n1: ret\n")
ROUTINE(drops_or_goes_on, "test %rdi,%rdi\njz 1f\ncmp $1,%rdi\njz 2f\nadd $8,%rsp\n" BACK "ret\n"
	MOVED "1: ret\n2: push %rbx\n" MOVED "jmp *(%rsi)\n" BACK)
ROUTINE(drops_or_switches, "test %rdi,%rdi\njz 1f\nadd $8,%rsp\n" BACK "ret\n" MOVED
	"1: mov %rsi,%rsp\njmp *%rdx\n")
ROUTINE(switches_or_drops, "test %rdi,%rdi\njz 1f\nmov %rsi,%rsp\njmp *%rdx\n1: add $8,%rsp\n" BACK
	"ret\n" MOVED)
ROUTINE(drops_and_jumps, "add $8,%rsp\n" BACK "jmp leaf\n" MOVED)
ROUTINE(drops_and_branches, "add $8,%rsp\n" BACK "test %edi,%edi\njz leaf\nret\n" MOVED)
ROUTINE(drops_elsewhere, "push %rbx\n" MOVED "test %rdi,%rdi\njz 1f\njmp bare_pops_two\n"
	"1: pop %rbx\n" BACK "ret\n")
ROUTINE(returns_elsewhere, "push %rbx\n" MOVED "test %rdi,%rdi\njz 1f\njmp bare_pops_one\n"
	"1: pop %rbx\n" BACK "ret\n")
ROUTINE(jumps_to_drops, "jmp bare_drops\n")
BARE(bare_frame_or_not, "push %rbp\n" "test %rdi,%rdi\njz 1f\nmov %rsp,%rbp\n"
	"1: test %rsi,%rsi\njz 2f\nincq 8(%rbp)\n"
	"2: pop %rbp\n" "ret\n")
BARE(bare_pops_two, "add $16,%rsp\nret\n")
BARE(bare_pops_one, "pop %rbx\nret\n")
ROUTINE(looks, "mov (%rsp),%rax\nret\n")
BARE(bare_saves, "lea 8(%rsp),%rdx\nmov %rdx,48(%rdi)\nmov (%rsp),%rdx\nmov %rdx,56(%rdi)\n"
	"xor %eax,%eax\nret\n")
BARE(bare_jumps, "push %rbx\nmov 8(%rsp),%rsi\npop %rbx\njmp bare_ends\n")
BARE(bare_ends, "pop %rdx\nadd $4,%rdx\njmp *%rdx\n")
BARE(bare_adds, "sub $8,%rsp\nincq 8(%rsp)\nadd $8,%rsp\nret\n")
BARE(bare_drops, "push %rdi\ntest %rdi,%rdi\njz 1f\nlea 16(%rsp),%rsp\njmp 2f\n"
	"1: pop %rdi\n"
	"2: ret\n")
BARE(bare_text, "pop %rsi\n"
	"1: movzbl (%rsi),%eax\ninc %rsi\ntest %al,%al\njz 2f\ncall leaf\njmp 1b\n"
	"2: jmp *%rsi\n")
BARE(bare_behind, "test %rdi,%rdi\njz 1f\naddq $9,(%rsp)\n1: ret\n")
BARE(bare_frame, "push %rbp\nmov %rsp,%rbp\nmov 8(%rbp),%rax\nmov %rax,56(%rdi)\nleave\nret\n")
BARE(bare_vector, "test %rdi,%rdi\njnz 1f\nret\n1: movq (%rsp),%xmm0\nmovq %xmm0,56(%rdi)\nret\n")
BARE(bare_stack, "mov %rsp,%rcx\nmov (%rcx),%rax\nmov %rax,56(%rdi)\nret\n")
BARE(bare_ending, "push %rax\ncall abort\nnop\npop %rax\npop %rax\njmp *%rax\n")
BARE(bare_plain, "push %rbx\nmov %rdi,%rbx\ncall leaf\nlea (%rbx,%rax),%eax\npop %rbx\nret\n")
__attribute__((noinline)) int leaf(int x) {
	return x * 3;
}
#define CALLER(name) \
	int name(void *); __attribute__((noinline)) int calls_##name(void *p) { return name(p) + 1; }
CALLER(saves_pushing) CALLER(adds) CALLER(jumps) CALLER(stores) CALLER(pushes) CALLER(tails)
	CALLER(drops) CALLER(pushes_another) CALLER(restores) CALLER(looks)
CALLER(drops_without_rows) CALLER(drops_or_goes_on) CALLER(drops_or_switches)
	CALLER(switches_or_drops) CALLER(drops_and_jumps) CALLER(drops_and_branches)
	CALLER(drops_elsewhere) CALLER(returns_elsewhere) CALLER(jumps_to_drops)
	CALLER(bare_frame_or_not)
CALLER(bare_saves) CALLER(bare_jumps) CALLER(bare_drops) CALLER(bare_adds) CALLER(bare_text)
	CALLER(bare_behind) CALLER(bare_frame) CALLER(bare_vector) CALLER(bare_stack)
	CALLER(bare_ending) CALLER(bare_plain)
int main(int c, char **v) {
	return 0;
}

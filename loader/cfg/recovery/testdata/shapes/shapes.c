// Routines of many shapes: from C, and in assembly what no compiler makes.

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int sink;
__attribute__((noinline,noclone)) int leaf(int x) {
	sink++;
	return x * 3 + 1;
}
__attribute__((noinline,noclone)) int sibling(int x) {
	return leaf(x + 1);
}
__attribute__((noinline,noclone)) static void die(int x) {
	printf("%d\n", x);
	exit(x);
}
__attribute__((noinline,noclone)) static void dieLater(int x) {
	puts("later");
	die(x + 1);
}
__attribute__((noinline,noclone)) int guarded(int x) {
	if (x == 77) dieLater(x);
	return x * 2 + leaf(x);
}
__attribute__((noinline,noclone)) int loops(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s += leaf(j);
	return s;
}
__attribute__((noinline,noclone)) int variable(int n) {
	char b[n];
	memset(b, 1, n);
	return leaf(b[n / 2]) + leaf(b[0]);
}
__attribute__((noinline,noclone)) int fixed(int n) {
	char b[40];
	memset(b, n, 40);
	return leaf(b[n & 31]) + leaf(b[0]);
}
__attribute__((noinline,noclone)) void forever(int n) {
	for (;;) leaf(n++);
}
__attribute__((noinline,noclone)) int indirect(int (*f)(int), int x) {
	return f(x) + 1;
}
__attribute__((noinline,noclone)) void *own(void) {
	return __builtin_return_address(0);
}
jmp_buf env;
__attribute__((noinline,noclone)) int twice(void) {
	if (setjmp(env)) return 1;
	return leaf(2);
}
int maybe(int);
__asm__(".globl maybe\n.type maybe,@function\nmaybe:\n.cfi_startproc\n"
	"test %edi,%edi\njne leaf\nxor %eax,%eax\nret\n.cfi_endproc\n.size maybe,.-maybe\n");
void switcher(void *);
__asm__(".globl switcher\n.type switcher,@function\nswitcher:\n.cfi_startproc\n"
	"mov %rsp,8(%rdi)\nmov (%rdi),%rsp\nret\n.cfi_endproc\n.size switcher,.-switcher\n");
void exchanger(void *);
__asm__(".globl exchanger\n.type exchanger,@function\nexchanger:\n.cfi_startproc\n"
	"xchg %rsp,(%rdi)\nret\n.cfi_endproc\n.size exchanger,.-exchanger\n");
int saver(void *);
__asm__(".globl saver\n.type saver,@function\nsaver:\n.cfi_startproc\n"
	"mov (%rsp),%rdx\nmov %rdx,56(%rdi)\nxor %eax,%eax\nret\n.cfi_endproc\n.size saver,.-saver\n");
void thunk(void);
__asm__(".globl thunk\n.type thunk,@function\nthunk:\n.cfi_startproc\n"
	"call 1f\n1: add $8,%rsp\nret\n.cfi_endproc\n.size thunk,.-thunk\n");
void liar(void);
__asm__(".globl liar\n.type liar,@function\nliar:\n.cfi_startproc\n"
	"push %rbx\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\npop %rbx\nret\n"
	".cfi_endproc\n.size liar,.-liar\n");
int pusher(int);
__asm__(".globl pusher\n.type pusher,@function\npusher:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %edi,%eax\npush %rbx\npush %rcx\n"
	"xor %ecx,%ecx\ncpuid\npop %rcx\npop %rbx\nadd %edi,%eax\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\npushf\npopf\npop %rbp\n"
	".cfi_adjust_cfa_offset -8\npush %rcx\npop %rcx\n"
	"1: dec %edi\njns 1b\n"
	"pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size pusher,.-pusher\n");
void keeper(void);
__asm__(".globl keeper\n.type keeper,@function\nkeeper:\n.cfi_startproc\n"
	"push %rbx\ncall leaf\npop %rbx\nret\n.cfi_endproc\n.size keeper,.-keeper\n");
void counter(void);
__asm__(".globl counter\n.type counter,@function\ncounter:\n.cfi_startproc\n"
	"mov $5,%ecx\n1: nop\nloop 1b\nret\n.cfi_endproc\n.size counter,.-counter\n");
void middle(void);
__asm__(".globl middle\n.type middle,@function\nmiddle:\n.cfi_startproc\n"
	"call entered+1\nret\n.cfi_endproc\n.size middle,.-middle\n");
void entered(void);
__asm__(".globl entered\n.type entered,@function\nentered:\n.cfi_startproc\n"
	"nop\nret\n.cfi_endproc\n.size entered,.-entered\n");
void farther(void);
__asm__(".globl farther\n.type farther,@function\nfarther:\n.cfi_startproc\n"
	"jmp uncharted\n.cfi_endproc\n.size farther,.-farther\nuncharted: ret\n");
void restorer(void);
__asm__(".globl restorer\n.type restorer,@function\nrestorer:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rsp,%rbx\ntest %edi,%edi\nje 1f\n"
	"call leaf\n"
	"1: push %rdi\n.cfi_adjust_cfa_offset 8\ncall leaf\n"
	"mov %rbx,%rsp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
	".cfi_endproc\n.size restorer,.-restorer\n");
void misplacer(void);
__asm__(".globl misplacer\n.type misplacer,@function\nmisplacer:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rsp,%rbx\ntest %edi,%edi\nje 1f\n"
	"mov %rsi,%rbx\n"
	"1: push %rdi\n.cfi_adjust_cfa_offset 8\ncall leaf\n"
	"mov %rbx,%rsp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
	".cfi_endproc\n.size misplacer,.-misplacer\n");
int chooser(int);
__asm__(".globl chooser\n.type chooser,@function\nchooser:\n.cfi_startproc\n"
	"lea counter(%rip),%rax\nlea sibling(%rip),%rdx\ntest %edi,%edi\ncmove %rdx,%rax\n"
	"jmp *%rax\n.cfi_endproc\n.size chooser,.-chooser\n");
int waverer(int);
__asm__(".globl waverer\n.type waverer,@function\nwaverer:\n.cfi_startproc\n"
	"lea counter(%rip),%rax\nlea 1f(%rip),%rdx\ntest %edi,%edi\ncmove %rdx,%rax\n"
	"jmp *%rax\n"
	"1: ret\n.cfi_endproc\n.size waverer,.-waverer\n");
int applier(void *, int);
__asm__(".globl applier\n.type applier,@function\napplier:\n.cfi_startproc\n"
	"push %rdi\n.cfi_adjust_cfa_offset 8\nmov %esi,%edi\ncall leaf\n"
	"1: mov %eax,%esi\npop %rdi\n.cfi_adjust_cfa_offset -8\nmov (%rdi),%rax\njmp *%rax\n"
	".cfi_endproc\n"
	".size applier,.-applier\n.data\n.quad 1b\n.text\n");
void cloner(void);
__asm__(".globl cloner\n.type cloner,@function\ncloner:\n.cfi_startproc\n"
	"mov $56,%eax\ntest %edi,%edi\nje 1f\nmov $435,%eax\n"
	"1: syscall\nret\n.cfi_endproc\n.size cloner,.-cloner\n");
void copier(int, int);
__asm__(".globl copier\n.type copier,@function\ncopier:\n.cfi_startproc\n"
	"mov %esi,%eax\ntest %edi,%edi\nje 1f\nmov $56,%eax\n"
	"1: syscall\nret\n.cfi_endproc\n.size copier,.-copier\n");
void splitter(void);
__asm__(".globl splitter\n.type splitter,@function\nsplitter:\n.cfi_startproc\n"
	"xor %eax,%eax\nmov $56,%al\nsyscall\nret\n.cfi_endproc\n.size splitter,.-splitter\n");
void budder(void);
__asm__(".globl budder\n.type budder,@function\nbudder:\n.cfi_startproc\n"
	"push $56\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\nsyscall\n"
	"ret\n.cfi_endproc\n.size budder,.-budder\n");
void asker(void);
__asm__(".globl asker\n.type asker,@function\nasker:\n.cfi_startproc\n"
	"mov $39,%eax\nsyscall\nret\n.cfi_endproc\n.size asker,.-asker\n");
int (*volatile pointer)(int) = sibling;
int main(int c, char **v) {
	if (c > 100) {
		switcher(v);
		exchanger(v);
		saver(v);
		thunk();
		liar();
		pusher(c);
		keeper();
		counter();
		middle();
		entered();
		restorer();
		misplacer();
		chooser(c);
		waverer(c);
		applier(v, c);
		cloner();
		copier(c, c);
		splitter();
		budder();
		asker();
		farther();
		forever(1);
	}
	return maybe(c) + guarded(c) + loops(c) + variable(c) + fixed(c) + indirect(pointer,
		c) + twice() + (own() != 0);
}

// Jumps to labels that a table holds, through pointers that were read from it before, where no
// frame is; and a switch beside a tail call through a pointer. Such a jump was taken for one
// out of the routine, where a table with all labels was known.

struct state { const void *next; unsigned op; int n; int (*call)(int); };
#define F __attribute__((noinline,noclone))
F int threaded(const void *const *ip, unsigned op, const void *const **out) {
	static const void *const t[] = {&&a, &&b, &&c, &&d};
	int s = op;
	if (out) {
		*out = t;
		return 0;
	}
	goto *t[op & 3];
a: s += 2; goto **ip++;
b: s *= 3; goto **ip++;
c: s ^= s >> 3; goto **ip++;
d: return s;
}
F int resumed(struct state *p) {
	static const void *const t[] = {&&s0, &&s1, &&s2};
	if (p->next) goto *p->next;
	goto *t[p->op % 3];
s0: p->next = &&s1; return ++p->n;
s1: if (p->n & 1) {
		p->next = &&s2;
		return p->n += 2;
	}
	p->next = &&s0;
	return p->n;
s2: p->next = 0; p->op++; return p->n -= 1;
}
F int switched(struct state *p) {
	switch (p->op) {
	case 0: return p->n * 3;
	case 1: p->n++; break;
	case 2: p->n ^= 5; break;
	case 3: return 7;
	case 4: p->n -= 9; break;
	case 5: return -1;
	case 6: p->n *= 9;
	}
	return p->call(p->n);
}
int folded(unsigned n);
__asm__(".globl folded\n.type folded,@function\n"
	"folded: .cfi_startproc\nlea table(%rip), %r8\nand $1, %edi\njmp *(%r8,%rdi,8)\n"
	"1: xor %edi, %edi\ntest $4, %sil\nje 2f\njmp *(%r8,%rdi,8)\n"
	"2: mov %esi, %eax\nret\n.cfi_endproc\n.size folded, .-folded\n"
	".globl given\n.type given,@function\n"
	"given: .cfi_startproc\nlea 8f(%rip), %rax\ntest %edi, %edi\nje 9f\nmov (%rsi), %rdx\n"
	"mov %rax, (%rsi)\njmp *%rdx\n"
	"9: jmp *%rax\n"
	"8: ret\n.cfi_endproc\n.size given, .-given\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\ntable: .quad 1b, 2b\n.text\n");
int sends(int n, unsigned k), tags(int n), marks(int n);
__asm__(".globl sends\n.type sends,@function\n"
	"sends: .cfi_startproc\ntest %edi, %edi\njs 7f\nmov %esi, %esi\n"
	"lea (%rsi,%rsi,2), %rax\nlea records(%rip), %rdx\nmov (%rdx,%rax,8), %rax\n"
	"jmp *%rax\n.cfi_endproc\n.size sends, .-sends\n"
	".globl tags\n.type tags,@function\n"
	"tags: .cfi_startproc\nadd $1, %edi\n"
	"7: mov %edi, %eax\nret\n.cfi_endproc\n.size tags, .-tags\n"
	".globl marks\n.type marks,@function\n"
	"marks: .cfi_startproc\nadd $2, %edi\njs 7b\nmov %edi, %eax\nret\n.cfi_endproc\n"
	".size marks, .-marks\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\n"
	"records: .quad tags,1,2, switched,3,4, marks,5,6, folded,7,8\n.text\n");
int ahead(const unsigned char *pc, int n), elsewhere(unsigned n, unsigned m);
__asm__(".globl ahead\n.type ahead,@function\n"
	"ahead: .cfi_startproc\nlea steps(%rip), %r8\nmovzbl (%rdi), %eax\n"
	"lea (%r8,%rax,8), %rdx\n"
	"1: dec %esi\njs 3f\njmp *(%rdx)\n"
	"2: inc %rdi\njmp 1b\n"
	"4: movzbl 2(%rdi), %eax\nadd $2, %rdi\nlea (%r8,%rax,8), %rdx\njmp *(%rdx)\n"
	"3: mov %esi, %eax\nret\n.cfi_endproc\n.size ahead, .-ahead\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\n"
	"steps: .quad 2b, 4b, 3b\n.text\n");
#define PUSH "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n"
#define POP "pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_def_cfa_offset 16\n"
__asm__(".globl elsewhere\n.type elsewhere,@function\nelsewhere: .cfi_startproc\n" PUSH
	"lea 9f(%rip), %rbx\nmov %edi, %edi\nmov %esi, %esi\ncmp $3, %edi\nja 1f\n"
	"lea 5f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n"
	"1: cmp $1, %esi\nja 3f\nlea 6f(%rip), %rdx\nmovslq (%rdx,%rsi,4), %rbx\n"
	"add %rdx, %rbx\n"
	"2: jmp *%rbx\n3: mov $1, %eax\n" POP "4: mov $2, %eax\n" POP
	".cfi_endproc\n.size elsewhere, .-elsewhere\n"
	".section .text.unlikely,\"ax\"\n.cfi_startproc\nud2\n.cfi_def_cfa_offset 16\n"
	".cfi_offset 3,-16\n"
	"9: mov $100, %eax\n" POP ".cfi_endproc\n"
	".section .rodata\n.balign 4\n"
	"5: .long 2b-5b, 3b-5b, 4b-5b, 3b-5b\n"
	"6: .long 3b-6b, 4b-6b\n.text\n");
int main(int c, char **v) {
	const void *const *t;
	struct state p = {0, c, c, 0};
	threaded(0, 0, &t);
	return threaded(t, c, 0) + resumed(&p) + switched(&p) + folded(c) + ahead((const unsigned char
		*)v, c) + elsewhere(c, c) + sends(c, c) + tags(c) + marks(c);
}

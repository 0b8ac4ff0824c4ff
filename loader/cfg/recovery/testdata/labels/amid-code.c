// A jump goes through one of two tables, of which one lies behind its routine and is named by
// where an element before its first would lie, amid code, by a block that a jump leads from.

int amid(unsigned n, unsigned m);
__asm__(".globl amid\n.type amid,@function\n"
	"amid: .cfi_startproc\npush %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n"
	"mov %edi, %edi\nmov %esi, %esi\ncmp $3, %edi\nja 1f\n"
	"lea 5f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\nmov $7f-8, %ecx\n"
	"jmp *%rax\n"
	"1: cmp $1, %esi\nja 3f\nmov $6f, %ecx\n"
	"2: jmp *(%rcx,%rsi,8)\n"
	"3: mov $1, %eax\njmp 0f\n"
	"8: mov $3, %eax\njmp 0f\n"
	"9: mov $100, %eax\njmp 0f\n"
	"4: mov $2, %eax\n.balign 8\n"
	"0: pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size amid, .-amid\n"
	".balign 8\n"
	"7: .quad 8b, 9b\n"
	".section .rodata\n.balign 8\n"
	"6: .quad 3b, 4b\n"
	"5: .long 2b-5b, 3b-5b, 4b-5b, 3b-5b\n.text\n");
int main(int c, char **v) {
	return amid(c, c);
}

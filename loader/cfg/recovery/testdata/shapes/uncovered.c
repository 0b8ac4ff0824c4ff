// Code without unwind information leads to the routines of the program, and points at them.

volatile int sink;
__attribute__((noinline,noclone)) static int called(int x) {
	return x * 3 + 1;
}
__attribute__((noinline,noclone)) static int jumped(int x) {
	return x * 5 + 1;
}
__attribute__((noinline,noclone)) static int pointed(int x) {
	return x * 7 + 1;
}
__attribute__((noinline,noclone)) static int left(int x) {
	return x * 9 + 1;
}
int sized(int), unsized(int), again(int);
__asm__(".globl sized,again\n.type sized,@function\n.type again,@function\n"
	"sized:\n"
	"again:\nsub $8,%rsp\nlea pointed(%rip),%rax\ncall called\nadd $8,%rsp\njmp jumped\n"
	".size sized,.-sized\n.size again,.-again\nnop\n.p2align 4\n");
__asm__(".globl unsized\n.type unsized,@function\n"
	"unsized:\nmov %edi,%eax\nret\n"
	".globl label\n"
	"label: nop\n");
int main(int c, char **v) {
	sink = called(c) + jumped(c + 1) + pointed(c + 2) + left(c + 3) + sized(c) + unsized(c);
	return 0;
}

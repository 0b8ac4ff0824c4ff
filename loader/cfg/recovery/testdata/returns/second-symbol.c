// A function in assembly runs into another that has a symbol of its own.

__asm__(".globl first,second\n.type first,@function\n.type second,@function\n"
	"first:\n.cfi_startproc\nlea 3(%rdi),%edi\n"
	"second:\nmov %edi,%eax\nret\n.cfi_endproc\n.size first,.-first\n");
int first(int), second(int);
int (*volatile p)(int) = second;
int main(int c, char **v) {
	return first(c) + p(c);
}

// The return address of reads is in rax. BODY are instructions that do something with it.

__asm__(".globl reads\n.type reads,@function\nreads: .cfi_startproc\nmov (%rsp),%rax\n" BODY
	"\nret\n.cfi_endproc\n.size reads,.-reads\n"
	".globl keeps\n.type keeps,@function\n"
	"keeps: .cfi_startproc\nxor %esi,%esi\nret\n.cfi_endproc\n.size keeps,.-keeps\n");
void *held;
int reads(void);
int main(int c, char **v) {
	return reads();
}

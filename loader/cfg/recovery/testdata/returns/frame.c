// The return address is kept in the frame of tells. BODY are instructions that do something
// with where it is.

__asm__(".globl tells\n.type tells,@function\n"
	"tells: .cfi_startproc\nsub $0x28,%rsp\n.cfi_adjust_cfa_offset 0x28\n"
	"mov 0x28(%rsp),%rax\nmov %rax,8(%rsp)\n"
	BODY "\nadd $0x28,%rsp\n.cfi_adjust_cfa_offset -0x28\nret\n.cfi_endproc\n"
	".size tells,.-tells\n");
#define ROUTINE(name, body) \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ": .cfi_startproc\n" body \
	"\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n");
ROUTINE(keeps, "xor %edi,%edi\nxor %esi,%esi\nxor %eax,%eax")
ROUTINE(spares, "xor %edi,%edi")
ROUTINE(own_memcpy, "xor %edi,%edi")
void *held;
int puts(const char *), tells(void);
int main(int c, char **v) {
	return puts("") + tells();
}

// Code that calls through pointers reads how a function begins: signed and plainly begin with a
// signature that is jumped over. What rotated jumps over is code that runs.

__asm__(".globl signed\n.type signed,@function\n"
	"signed: .cfi_startproc\njmp 1f\n.byte 0x76, 0x32, 0x28, 0x2c, 0, 0x90\n"
	"1: test %edi,%edi\nje 2f\ninc %edi\n"
	"2: mov %edi,%eax\nret\n.cfi_endproc\n.size signed,.-signed\n"
	".globl rotated\n.type rotated,@function\n"
	"rotated: .cfi_startproc\njmp 1f\n"
	"3: inc %edi\n"
	"1: test %edi,%edi\njne 3b\nmov %edi,%eax\nret\n.cfi_endproc\n"
	".size rotated,.-rotated\n"
	".globl plainly\n.type plainly,@function\n"
	"plainly: .cfi_startproc\njmp 1f\n.byte 0x76, 0x32, 0x28, 0x2c, 0, 0x90\n"
	"1: mov %edi,%eax\nret\n.cfi_endproc\n.size plainly,.-plainly\n");
int signed_(int) __asm__("signed"), rotated(int), plainly(int);
int (*volatile pointers[])(int) = { signed_, rotated, plainly };
int main(int c, char **v) {
	return pointers[c](c);
}

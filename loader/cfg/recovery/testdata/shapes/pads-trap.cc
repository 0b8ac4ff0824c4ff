// A landing pad that begins with a trap never runs: Rust has them where a panic cannot get to.
// Several that begin alike jump to what they have in common. MARK is what a landing pad begins
// with.

void gone(int), back(int);
extern "C" int padded(int);
asm(".text\n.type padded,@function\n"
	"padded:\n.cfi_startproc\n.cfi_personality 0x3,__gxx_personality_v0\n"
	".cfi_lsda 0x3,9f\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
	"test %edi,%edi\nje 5f\n"
	"1: call _Z4backi\n"
	"2: pop %rbx\n.cfi_remember_state\n.cfi_adjust_cfa_offset -8\nret\n"
	".cfi_restore_state\n"
	"3: " MARK "\nud2\n"
	"5: call _Z4gonei\n6: " MARK "\njmp 7f\n"
	"7: mov %rax,%rdi\ncall _Unwind_Resume\n"
	".cfi_endproc\n8: .size padded,.-padded\n"
	".section .gcc_except_table,\"a\"\n"
	"9: .byte 0xff,0xff,1\n.uleb128 11f-10f\n"
	"10: .uleb128 1b-padded\n.uleb128 2b-1b\n.uleb128 3b-padded\n.uleb128 0\n"
	".uleb128 5b-padded\n.uleb128 6b-5b\n.uleb128 6b-padded\n.uleb128 0\n"
	"11: .text\n");
void (*volatile thrower)(int);
void gone(int i) {
	thrower(i);
}
void back(int) {
}
int main(int argc, char **) {
	return padded(argc);
}

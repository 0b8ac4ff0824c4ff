// Routines that others name by their distance from something else.

#define HIDDEN __attribute__((noinline, visibility("hidden")))
typedef int function(int);
int puts(const char *);
HIDDEN int in_table(int x) {
	return x % 7;
}
HIDDEN int last_in_table(int x) {
	return x % 9;
}
HIDDEN int from_itself(int x) {
	return x % 11;
}
HIDDEN int far_from_itself(int x) {
	return x % 15;
}
HIDDEN int behind_others(int x) {
	return x % 13;
}
__attribute__((noinline)) static int tagged(int x) {
	return x * 3 + 1;
}
__attribute__((noinline)) static int packed(int x) {
	return x * 9 + 1;
}
HIDDEN int amidst_code(int x) {
	return x % 17;
}
HIDDEN int among_others(int x) {
	return x % 19;
}
HIDDEN int from_label(int x) {
	return x % 21;
}
HIDDEN int from_label_in_code(int x) {
	return x % 23;
}
__attribute__((noinline)) static int called(int x) {
	return x * 5 + 1;
}
extern const int table[], own[];
extern const long far[];
asm(".pushsection .rodata\n.balign 8\n"
	".globl far, table, own\n.hidden far, table, own\n"
	"far: .quad far_from_itself - .\n"
	"table: .long in_table - table, last_in_table - table, 0, puts@PLT + 12, "
	"bare - table, behind_others - table\n"
	"own: .long from_itself - .\n"
	".popsection\n"
	".pushsection .rodata\n.balign 4\n.globl records, far_records\n.hidden records, far_records\n"
	"records: .long 7, 0x10005, among_others - records\n"
	"far_records: .long 0x7000001, from_label - .Llabel, 0x7000002, called - .Llabel + 1\n"
	".popsection\n"
	".pushsection .text\n"
	"bare: nop\n"
	".Llabel: ret\n.balign 4\n"
	".globl text\n.hidden text\n"
	"text: .long amidst_code - text\n"
	".globl textual\n.hidden textual\n"
	"textual: .long from_label_in_code - .Llabel\n.popsection\n");
extern const int text[], textual[], records[], far_records[];
static struct __attribute__((packed)) {
	char c;
	function *f;
}
odd = {1, packed};
char *volatile tag = (char *)tagged + 3;
int main(int argc, char **argv) {
	char *label;
	asm("lea .Llabel(%%rip), %0" : "=r"(label));
	function *f[] = { (function *)((char *)table + table[argc & 1]),
		(function *)((char *)own + *own), (function *)((char *)far + *far),
		(function *)(tag - 3), odd.f, (function *)((char *)text + *text),
		(function *)((char *)records + records[2]), (function *)(label + far_records[1]),
		(function *)(label + *textual)};
	int sum = puts("");
	for (int i = 0; i < 9; i++) sum += f[i](argc);
	if (argc > 5) odd.f = 0;
	return sum + called(argc) + in_table(1) + last_in_table(2) + behind_others(3) + from_itself(4)
		+ far_from_itself(5) + tagged(6) + packed(7) + amidst_code(8) + among_others(9) +
		from_label(10) + from_label_in_code(11);
}

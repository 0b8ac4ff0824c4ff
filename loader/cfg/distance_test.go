package cfg_test

import (
	"strings"
	"testing"
)

const distances = `
#define HIDDEN __attribute__((noinline, visibility("hidden")))
typedef int function(int);
int puts(const char *);
HIDDEN int in_table(int x) { return x % 7; }
HIDDEN int last_in_table(int x) { return x % 9; }
HIDDEN int from_itself(int x) { return x % 11; }
HIDDEN int far_from_itself(int x) { return x % 15; }
HIDDEN int behind_others(int x) { return x % 13; }
__attribute__((noinline)) static int tagged(int x) { return x * 3 + 1; }
__attribute__((noinline)) static int packed(int x) { return x * 9 + 1; }
HIDDEN int amidst_code(int x) { return x % 17; }
HIDDEN int among_others(int x) { return x % 19; }
HIDDEN int from_label(int x) { return x % 21; }
HIDDEN int from_label_in_code(int x) { return x % 23; }
__attribute__((noinline)) static int called(int x) { return x * 5 + 1; }
extern const int table[], own[];
extern const long far[];
asm(".pushsection .rodata\n.balign 8\n"
	".globl far, table, own\n.hidden far, table, own\n"
	"far: .quad far_from_itself - .\n"
	"table: .long in_table - table, last_in_table - table, 0, puts@PLT + 12, bare - table, behind_others - table\n"
	"own: .long from_itself - .\n"
	".popsection\n"
	".pushsection .rodata\n.balign 4\n.globl records, far_records\n.hidden records, far_records\n"
	"records: .long 7, 0x10005, among_others - records\n"
	"far_records: .long 0x7000001, from_label - .Llabel, 0x7000002, called - .Llabel + 1\n"
	".popsection\n"
	".pushsection .text\nbare: nop\n.Llabel: ret\n.balign 4\n.globl text\n.hidden text\ntext: .long amidst_code - text\n.globl textual\n.hidden textual\ntextual: .long from_label_in_code - .Llabel\n.popsection\n");
extern const int text[], textual[], records[], far_records[];
static struct __attribute__((packed)) { char c; function *f; } odd = {1, packed};
char *volatile tag = (char *)tagged + 3;
int main(int argc, char **argv)
{
	char *label;
	asm("lea .Llabel(%%rip), %0" : "=r"(label));
	function *f[] = {
		(function *)((char *)table + table[argc & 1]), (function *)((char *)own + *own), (function *)((char *)far + *far), (function *)(tag - 3), odd.f,
		(function *)((char *)text + *text), (function *)((char *)records + records[2]), (function *)(label + far_records[1]), (function *)(label + *textual)};
	int sum = puts("");
	for (int i = 0; i < 9; i++)
		sum += f[i](argc);
	if (argc > 5)
		odd.f = 0;
	return sum + called(argc) + in_table(1) + last_in_table(2) + behind_others(3) + from_itself(4) + far_from_itself(5) + tagged(6) + packed(7) + amidst_code(8) + among_others(9) + from_label(10) + from_label_in_code(11);
}
`

// A routine whose address is given as a distance, or with a tag, may be entered through a pointer.
func TestDistancesAreReferences(t *testing.T) {
	for _, c := range []struct {
		flags []string
		taken map[string]bool
	}{
		{[]string{"-O1", "-pie", "-fPIE"}, map[string]bool{"called": false}},
		{[]string{"-O1", "-no-pie", "-fno-pie"}, map[string]bool{"called": false}},
		{[]string{"-O1", "-pie", "-fPIE", "-mcmodel=large"}, map[string]bool{"called": true}}, // every call is by a distance
	} {
		p := recoverFile(t, compile(t, distances, c.flags...))
		want := map[string]bool{"in_table": true, "last_in_table": true, "from_itself": true, "far_from_itself": true, "tagged": true, "packed": true, "behind_others": true, "amidst_code": true, "among_others": true, "from_label": true, "from_label_in_code": true, "main": true}
		for symbol, taken := range c.taken {
			want[symbol] = taken
		}
		for symbol, want := range want {
			if got := p.AddressTaken(routine(t, p, symbol).Addr); got != want {
				t.Errorf("%v: address of %s taken: %v, want %v", c.flags, symbol, got, want)
			}
		}
	}
}

// A part of a routine is entered by a table that leads to it, but not by a word of another table behind
// that one.
func TestPartsInTables(t *testing.T) {
	const source = `
		#define PARTED(name) __asm__( \
			".cfi_startproc\n.cfi_def_cfa_offset 32\n" #name ".cold: mov $7,%eax\njmp 1f\n.cfi_endproc\n" \
			".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\nsub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz " #name ".cold\n" \
			"1: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
			".section .rodata\n.balign 4\n.globl table_" #name ", next_" #name "\n" \
			"table_" #name ": .long note - table_" #name "\nnext_" #name ": .long " #name ".cold - table_" #name "\n.text\n"); \
			int name(int); extern const int table_##name[], next_##name[];
		__attribute__((noinline)) int note(int n) { return n; }
		PARTED(apart)
		PARTED(led_to)
		int main(int c, char **v) { return apart(c) + led_to(c) + table_apart[c] + next_apart[c] + table_led_to[c]; }`
	p := recoverFile(t, compile(t, source, "-O1", "-fvisibility=hidden", "-pie", "-fPIE"))
	for symbol, leftOut := range map[string]string{"apart": "", "led_to": "has a second entry at"} {
		if r := routine(t, p, symbol); leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
	}
}

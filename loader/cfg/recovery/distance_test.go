package recovery_test

import (
	"strings"
	"testing"
)

// A routine whose address is given as a distance, or with a tag, may be entered through a pointer.
func TestDistancesAreReferences(t *testing.T) {
	for _, c := range []struct {
		flags []string
		taken map[string]bool
	}{
		{[]string{"-O1", "-pie", "-fPIE"}, map[string]bool{"called": false}},
		{[]string{"-O1", "-no-pie", "-fno-pie"}, map[string]bool{"called": false}},
		// every call is by a distance
		{[]string{"-O1", "-pie", "-fPIE", "-mcmodel=large"}, map[string]bool{"called": true}},
	} {
		p := recoverFile(t, compileFile(t, "shapes/distances.c", c.flags...))
		want := map[string]bool{"in_table": true, "last_in_table": true, "from_itself": true,
			"far_from_itself": true, "tagged": true, "packed": true, "behind_others": true,
			"amidst_code": true, "among_others": true, "from_label": true,
			"from_label_in_code": true, "main": true}
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

// A part of a routine is entered by a table that leads to it, but not by a word of another table
// behind that one.
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
		if r := routine(t, p, symbol); leftOut == "" && r.LeftOut != "" ||
			!strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
	}
}

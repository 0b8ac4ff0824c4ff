package cfg_test

import (
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// hoisted has loops around a switch of whose table a register has the address all the while, but for
// behind a call: there it has something else, or, in two_tables, the address of another.
const hoisted = `
#define LOOP(name, first, before, function) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n" first "lea 9f(%rip),%rbx\n" \
	"1: call note\ncmp $2,%eax\nja 8f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"3: call note\n" before "mov $1,%edi\nxor %eax,%eax\ncall " #function "@plt\n" \
	"4: call note\njmp 1b\n" \
	"5: mov $1,%edi\ncall gone@plt\n" \
	"6: call note\ncall note\njmp 1b\n" \
	"8: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 4b-9b, 6b-9b\n10: .long 6b-10b, 6b-10b, 3b-10b\n.text\n");
#define OTHER "movslq %eax,%rbx\n"
LOOP(calls_err, "", OTHER, err)
LOOP(calls_error, "", OTHER, error)
LOOP(calls_error_at_line, "", OTHER, error_at_line)
LOOP(calls_gone, "", OTHER, gone)
LOOP(begins, "test %rdi,%rdi\njz 5f\n", OTHER, exit)
LOOP(no_table, "", "lea note(%rip),%rbx\n", error)
LOOP(two_tables, "", "lea 10f(%rip),%rbx\n", error)
`

// Behind a call of err or error, and in a register of the caller, is no table's address, where none is
// seen there.
func TestHoistedTables(t *testing.T) {
	const calls = `
		#include <err.h>
		#include <error.h>
		#include <stdlib.h>
		void gone(int);
		int note(void) { return 0; }
		int main(int c, char **v) { if (c > 5) { err(1, ""); error(1, 0, ""); error_at_line(1, 0, "", 0, ""); } return 0; }`
	const library = "void gone(int n) {}"
	p := recoverFile(t, compile(t, hoisted+calls, "-O1", "-L"+compileLibrary(t, "gone", library), "-lgone"))
	for symbol, tables := range map[string]int{"calls_err": 1, "calls_error": 1, "calls_error_at_line": 1, "calls_gone": 0, "begins": 1, "no_table": 1, "two_tables": 2} {
		r := routine(t, p, symbol)
		if got := r.LeftOut == ""; got != (tables > 0) || !got && !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("the switch of %s has %d tables; left out: %q", symbol, tables, r.LeftOut)
			continue
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Table.Targets) > 0 != (tables == 1) {
				t.Errorf("the switch of %s, with %d tables, is told to be one through %v", symbol, tables, bl.Table.Targets)
			}
		}
	}
}

// A switch in a loop all of whose exceptions come out of its cases, and lead back to it.
func TestSwitchInTry(t *testing.T) {
	const source = `
		int global;
		__attribute__((noinline)) int may(int k) { switch (k) { case 0: return 1; case 3: throw k; } return k * 2; }
		__attribute__((noinline)) int loop(int n) {
			int sum = 0;
			for (int i = 0; i < n; i++)
				try {
					switch (i % 7u) {
					case 0: sum += 1; break;
					case 1: sum += may(i) * 3; break;
					case 2: sum ^= may(global); break;
					case 3: throw n;
					case 4: sum -= may(sum); break;
					case 5: sum *= may(2); break;
					case 6: sum += 11; global++; break;
					}
				} catch (int k) { sum += 1000 + k; }
			return sum;
		}
		int main(int c, char **v) { return loop(c); }`
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
		r := routine(t, recoverFile(t, compile(t, source, level, "-xc++")), "_Z4loopi")
		if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
			t.Errorf("%s: %d switches are known, and the loop is left out: %q", level, n, r.LeftOut)
		}
	}
}

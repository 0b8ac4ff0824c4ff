package cfg_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// hoisted has loops around a switch of whose table a register has the address all the while, as far as
// can be seen but for behind a call: there it has something else, or, in two_tables, the address of
// another. In given it is an argument.
const hoisted = `
#define LOOP(name, first, base, before) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n" first base \
	"1: call note\ncmp $2,%eax\nja 8f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"3: call note\n" before "mov $1,%edi\ncall may_exit\n" \
	"4: call note\njmp 1b\n" \
	"5: mov $1,%edi\ncall may_exit\n" \
	"6: call note\ncall note\njmp 1b\n" \
	"8: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 4b-9b, 6b-9b, 0\n10: .long 6b-10b, 6b-10b, 3b-10b\n.text\n");
#define TABLE "lea 9f(%rip),%rbx\n"
LOOP(plain, "", TABLE, "")
LOOP(number, "", TABLE, "movslq %eax,%rbx\n")
LOOP(pointer, "", TABLE, "mov (%rax),%rbx\n")
LOOP(begins, "test %rdi,%rdi\njz 5f\n", TABLE, "")
LOOP(no_table, "", TABLE, "lea note(%rip),%rbx\n")
LOOP(two_tables, "", TABLE, "lea 10f(%rip),%rbx\n")
LOOP(given, "", "mov %rdi,%rbx\n", "")
`

// callees are what the routines around switches call, and a main function.
const callees = `
#include <stdlib.h>
__attribute__((noinline)) void may_exit(int n) { if (n) exit(n); }
int note(void) { return 0; }
int main(int c, char **v) { may_exit(c > 5); return 0; }
`

// A switch has one table: what else seems to be in its register comes by a way that is never gone, as
// behind a call of what ends the process.
func TestHoistedTables(t *testing.T) {
	p := recoverFile(t, compile(t, hoisted+callees, "-O1"))
	for symbol, targets := range map[string]int{"plain": 3, "number": 3, "pointer": 3, "begins": 3, "no_table": 3, "two_tables": 3, "given": 0} {
		r := routine(t, p, symbol)
		if got := r.LeftOut == ""; got != (targets > 0) || !got && !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("the switch of %s has %d targets; left out: %q", symbol, targets, r.LeftOut)
			continue
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && (len(bl.Succ) != targets || len(bl.Table.Targets) > 0 != (symbol != "two_tables")) {
				t.Errorf("the switch of %s, with %d targets, is told to be one through %v to %v", symbol, targets, bl.Table.Targets, bl.Succ)
			}
		}
	}
}

// twoSwitches has two switches a routine: the table's base of the first is in the register of the second's, by a way
// that is never gone, as it is where nothing else is seen of the second's own.
const twoSwitches = `
#define TWO(name, base) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\nlea 9f(%rip),%rbx\n" \
	"1: call note\ncmp $2,%eax\nja 11f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"3: call note\nmov $1,%edi\ncall may_exit\n" \
	"4: call note\njmp 2f\n" \
	"5: call note\njmp 1b\n" \
	"11: " base \
	"2: call note\ncmp $2,%eax\nja 8f\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n" \
	"6: call note\ncall note\njmp 2b\n" \
	"7: call note\ncall note\ncall note\njmp 2b\n" \
	"8: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 3b-9b, 5b-9b, 5b-9b\n10: .long 6b-10b, 6b-10b, 7b-10b\n" \
	".data\n.globl held_" #name "\nheld_" #name ": .quad 10b\n.text\n");
TWO(seen, "lea 10f(%rip),%rbx\nmovslq %eax,%rcx\ncmp $99,%rcx\ncmove %rcx,%rbx\n")
TWO(from_memory, "mov held_from_memory(%rip),%rbx\n")
TWO(unfollowed, "lea 10f(%rip),%rbx\nmovq %rbx,%xmm0\nmovq %xmm0,%rbx\n")
`

// What is guessed to be a switch's table is no other's: where its own is not seen, none is taken.
func TestGuessedTablesAreNoOthers(t *testing.T) {
	p := recoverFile(t, compile(t, twoSwitches+callees, "-O1"))
	for symbol, leftOut := range map[string]string{"seen": "", "from_memory": "unresolved indirect jump", "unfollowed": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		if r.LeftOut != "" {
			continue
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && (len(bl.Succ) != 2 || len(bl.Table.Targets) != 3) {
				t.Errorf("%s: a switch of two targets is told to be one through %v to %v", symbol, bl.Table.Targets, bl.Succ)
			}
		}
	}
}

// earlier has a loop around a switch on what does not change there: before the loop the case is known.
const earlier = `
#define EARLIER(name, base, jump, cases) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\nsub $16,%rsp\n.cfi_adjust_cfa_offset 16\njmp 7f\n7: cmp $3,%rdi\nja 8f\n" base \
	"1: call note\ntest %eax,%eax\njnz 8f\njmp *" jump "\n" \
	"2: call note\n" cases "jmp 1b\n" \
	"3: call note\ncall note\njmp 1b\n" \
	"4: jmp 1b\n" \
	"8: add $16,%rsp\n.cfi_adjust_cfa_offset -16\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n9: .long 2b-9b, 3b-9b, 4b-9b, 2b-9b\n.text\n");
#define CASE "lea 9f(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rbx\nadd %rdx,%rbx\n"
EARLIER(once, CASE, "%rbx", "")
EARLIER(changed, CASE, "%rbx", "mov %rax,%rbx\n")
EARLIER(stored, CASE "mov %rbx,8(%rsp)\n", "8(%rsp)", "mov %rax,8(%rsp)\n")
`

// Where the case is known before the jump to it, the jump leads where the table does; not so where
// something else may be in its register.
func TestCaseIsKnownEarlier(t *testing.T) {
	p := recoverFile(t, compile(t, earlier+callees, "-O1"))
	for symbol, leftOut := range map[string]string{"once": "", "changed": "unresolved indirect jump", "stored": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && (len(bl.Succ) != 3 || bl.Table.Targets != nil || bl.Table.Check >= 0) {
				t.Errorf("%s: the jump leads to %v by %+v, not to three cases by what is known no more", symbol, bl.Succ, bl.Table)
			}
		}
	}
}

// The same with a table of addresses, as files have that are not position independent.
func TestCaseIsKnownEarlierByAddress(t *testing.T) {
	source := strings.ReplaceAll(earlier, "2b-9b, 3b-9b, 4b-9b, 2b-9b", "2b, 3b, 4b, 2b")
	source = strings.NewReplacer(".long", ".quad", ".p2align 2", ".p2align 3").Replace(source)
	source = strings.ReplaceAll(source, `lea 9f(%rip),%rdx\nmovslq (%rdx,%rdi,4),%rbx\nadd %rdx,%rbx`, "mov 9f(,%rdi,8),%rbx")
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1", "-no-pie", "-fno-pie")), "once")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Errorf("%d switches are known, and it is left out: %q", n, r.LeftOut)
	}
}

// distant has switches whose tables' addresses are sums, in blocks before those of the switches, of what a register
// holds and of numbers. Nothing bounds the index.
const distant = `
#define SWITCH(table, here, a, b) "movabs $" table "f@GOTOFF,%rbp\nadd %rbx,%rbp\n" \
	here ": call note\nmovzbl (%rsp),%eax\nmovslq (%rbp,%rax,4),%rax\nadd %rbp,%rax\njmp *%rax\n" \
	a ": call note\njmp " here "b\n" \
	b ": call note\n"
#define DISTANT(name, base) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" \
	"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n" base "jmp 1f\n" \
	"1: push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp,-24\ncall note\n" \
	SWITCH("20", "2", "3", "4") SWITCH("21", "5", "6", "7") \
	"pop %rbp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
	".section .rodata\n.p2align 2\n20: .long 3b-20b, 4b-20b, 2b-20b\n21: .long 6b-21b, 7b-21b, 5b-21b, 0\n.text\n");
DISTANT(known, "lea _GLOBAL_OFFSET_TABLE_(%rip),%rbx\n")
DISTANT(given, "mov %rdi,%rbx\n")
DISTANT(itself, "lea 8(%rbx),%rbx\n")
`

// Tables are found by their distance from the global offset table, and end where the next is that is named so.
func TestTablesByDistance(t *testing.T) {
	p := recoverFile(t, compile(t, distant+callees, "-O1"))
	for symbol, leftOut := range map[string]string{"known": "", "given": "unresolved indirect jump", "itself": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		if n := ends(r)[cfg.Table]; leftOut == "" && n != 2 {
			t.Errorf("%s: %d switches, want 2", symbol, n)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 3 {
				t.Errorf("%s: a switch of three cases leads to %v", symbol, bl.Succ)
			}
		}
	}
}

// A case that is known earlier by a table of labels that others know, too, leaves no jump sure to leave the
// routine: it may go to one of the labels.
func TestCaseIsKnownEarlierByLabels(t *testing.T) {
	const source = `
		__asm__(".globl labelled\n.type labelled,@function\nlabelled: .cfi_startproc\n"
			"cmp $2,%rdi\nja 5f\nlea labels(%rip),%rdx\nmov (%rdx,%rdi,8),%rcx\njmp 1f\n1: dec %esi\njz 5f\njmp *%rcx\n"
			"2: inc %eax\njmp 1b\n3: mov (%r8),%rax\njmp *%rax\n4: mov $4,%eax\njmp 1b\n5: ret\n.cfi_endproc\n.size labelled,.-labelled\n"
			".section .data.rel.ro,\"aw\"\n.p2align 3\n.globl labels\nlabels: .quad 2b, 3b, 4b\n.text\n");
		extern void *labels[];
		void **known = labels;`
	for _, flags := range [][]string{{"-O1"}, {"-O1", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "labelled"); !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("%v: left out: %q", flags, r.LeftOut)
		}
	}
}

// A label that lies in the frame may be changed through a pointer between where it is known and the jump: to any that the
// routine has.
func TestLabelChangedThroughPointer(t *testing.T) {
	const source = `
		__attribute__((noinline)) void hook(void **p, void *q, int i) { if (i % 3 == 0) *p = q; }
		__attribute__((noinline)) int hooked(int x, int y) {
			static void *const t[] = { &&a, &&b };
			void *p;
			int r = 0;
			if (x & 8) p = t[x & 1]; else p = t[x >> 1 & 1];
			for (int i = 0; i < 3; i++) { hook(&p, &&c, y + i); goto *p; a: y = y * 3; goto c; b: y = y - 7; c: y = y ^ 5; r += y; }
			return r + y / 3;
		}`
	for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O0", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "hooked"); r.LeftOut != "" || fewest(r) != 3 {
			t.Errorf("%v: a jump of %d ways, want 3; left out: %q", flags, fewest(r), r.LeftOut)
		}
	}
}

// Where 40 ways part before a switch that each add to its table's address or not, not all sums are made: it is
// guessed to have the table that nothing is added to.
func TestSumsOfManyWays(t *testing.T) {
	ways := strings.Repeat(`"test %esi,%esi\nje 1f\nadd $8,%rbx\n1: dec %esi\n"`+"\n", 40)
	source := `__asm__(".globl summed\n.type summed,@function\nsummed: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\nlea 9f(%rip),%rbx\n"` + ways + `
		"movzbl (%rdi),%eax\nmovslq (%rbx,%rax,4),%rax\nadd %rbx,%rax\njmp *%rax\n"
		"3: call note\n4: call note\n5: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size summed,.-summed\n"
		".section .rodata\n.p2align 2\n9: .long 3b-9b, 4b-9b, 5b-9b, 4b-9b\n.text\n");`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1")), "summed")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Errorf("%d switches, want 1; left out: %q", n, r.LeftOut)
	}
}

// What source says that no variant is, compilers leave in ways that lead past the addresses of tables,
// and out of the routine.
func TestVisitedVariants(t *testing.T) {
	const source = `
		#include <string>
		#include <variant>
		#include <vector>
		struct number { int n; };
		using any = std::variant<int, number, double, std::string, std::monostate, long, std::vector<int>>;
		static unsigned long sum;
		template <class... T> struct either : T... { using T::operator()...; };
		template <class... T> either(T...) -> either<T...>;
		__attribute__((noinline)) void visit(std::vector<any> &all) {
			for (auto &x : all)
				sum += std::visit(either{[](int i) { return i; }, [](const number &a) { return a.n * 2; }, [](const std::string &s) { return (int)s.size(); }, [](auto &) { return -1; }}, x);
			for (auto &x : all)
				try {
					any y = x;
					std::visit([&](auto &p, auto &q) { sum += sizeof p * 10 + sizeof q; }, x, y);
					x = all[0];
				} catch (int e) {
					sum += e;
				} catch (std::bad_variant_access &) {
					sum++;
				}
		}
		int main(int c, char **v) { std::vector<any> all(c); visit(all); return sum; }`
	for _, flags := range [][]string{{"-O2"}, {"-O3"}, {"-O2", "-no-pie", "-fno-pie"}} {
		for _, r := range recoverFile(t, compile(t, source, append(flags, "-std=c++20", "-xc++")...)).Routines {
			if r.LeftOut != "" && r.Symbol != "_start" && r.LeftOut != "no unwind information" {
				t.Errorf("%v: %s is left out: %s", flags, r.Name, r.LeftOut)
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

// Interpreters with hundreds of computed gotos keep the table in a slot of a frame in which they take
// addresses, too, and have it in a register again after each call: what is found of the slot for one
// jump serves the others.
func TestTableOfManyJumps(t *testing.T) {
	const dispatch = "goto *tab[*pc++ | seen[0]];"
	defer cfg.LimitSteps(300_000)()
	source := labels + `char *volatile kept; N long h(long a, long b) { q += a ^ b; return a - b; }
		N long f(const unsigned char *pc, long a, long b, long c, long d, long e) { static void *const t[] = {` + each(255, "&&l$,") + `&&end };
		void *const *tab = t; __asm__("" : "+r"(tab)); long g = a * 3, i = b * 5, k = c * 7; char seen[8] = { 0 }; kept = seen; ` + dispatch +
		each(255, "l$: if (a & 1L << $ % 20) { a = h(a, b + $); b ^= h(c, d); if (b & 4) c += h(a, e); d ^= h(c, a); } else { c += a * $; d -= e; e ^= c; g += i * k; i ^= a; k -= b; }"+dispatch) +
		`end: return a + b + c + d + e + g + i + k; }`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1", "-fno-gcse")), "f")
	if r.LeftOut != "" || fewest(r) != 256 {
		t.Errorf("a jump of %d ways, want 256; left out: %q", fewest(r), r.LeftOut)
	}
}

// A label in the frame may have been changed before a call returns for the second time, through a pointer that another routine
// has been given.
func TestLabelAcrossSecondReturn(t *testing.T) {
	const source = `
		#include <setjmp.h>
		jmp_buf b; volatile int sink, times; typedef int (*keeps)(struct __jmp_buf_tag *); keeps kept;
		__attribute__((noinline)) void keep(void) { kept = _setjmp; }
		__attribute__((noinline)) void leave(void) { sink++; longjmp(b, 1); }
		__attribute__((noinline)) int again(int n) {
			void *volatile state = &&one; if (n > 100) state = &&three; kept(b); goto *state;
			one: sink += 1; state = &&two; if (times++ < 1) leave(); __asm__ volatile("nop"); goto *state;
			two: sink += 10; if (n & 1) sink += 3; else sink += 4; return sink + 100; three: sink += 20; return sink; }`
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "again"); r.LeftOut == "" && !slices.Contains(switchWays(r), 3) {
			t.Errorf("%v: jumps of %d ways, want one of 3", flags, switchWays(r))
		}
	}
}

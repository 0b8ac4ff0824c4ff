package cfg_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// switchWays lists how many ways each switch of a routine has, in ascending order.
func switchWays(r *cfg.Routine) (ways []int) {
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.End == cfg.Table {
			ways = append(ways, len(bl.Succ))
		}
	}
	slices.Sort(ways)
	return ways
}

// eight has what switches of eight cases need: cases of their own, none of which a compiler makes a table of numbers of.
const eight = `
#define N __attribute__((noinline))
volatile long q;
static unsigned other = 2;
N void set(unsigned *p, unsigned v) { *p = v & 7; q++; }
N unsigned *pick(unsigned *p, unsigned v) { set(p, v); return v & 8 ? p : &other; }
#define EIGHT(x) switch (x) { \
	case 0: a += q; \
	case 1: a ^= q + 1; break; \
	case 2: a *= q + 3; break; \
	case 3: a -= q * 5; \
	case 4: a |= q + 8; break; \
	case 5: a += q * q; break; \
	case 6: a -= q + 9; \
	case 7: a ^= q + 77; break; \
	default: __builtin_unreachable(); }
`

// A comparison says nothing of an index that is not what was compared: the table has eight entries in all of these.
func TestComparedIsNotTheIndex(t *testing.T) {
	for _, test := range []struct{ name, source string }{
		{"changed by a call", `N long f(long a, unsigned v) { unsigned x; set(&x, v); if (x > 3) return 0; set(&x, a); EIGHT(x) return a * 7; }`},
		{"changed through a pointer", `N long f(long a, unsigned v) { unsigned x; unsigned *p = pick(&x, v); if (x > 3) return 0; *p = v >> 1 & 7; EIGHT(x) set(&x, 1); return a * 7; }`},
		{"changed beneath a pointer", `N long f(long a, unsigned v) { unsigned x; unsigned *p = pick(&x, v); if (*p <= 3) { x = v >> 1 & 7; EIGHT(*p) } set(&x, 1); return a * 7; }`},
		{"changed as an element", `N long f(long a, unsigned v) { unsigned x[8]; for (int i = 0; i < 8; i++) set(x + i, v + i); if (x[2] <= 3) { x[v & 7] = v >> 1 & 7; EIGHT(x[2]) } return a * 7 + x[1]; }`},
		{"read twice", `extern volatile unsigned state; N long f(long a, unsigned v) { if (state <= 3) { q++; EIGHT(state) } return a * 7; } volatile unsigned state;`},
		{"another half", `struct pair { unsigned a, b; }; N long f(long a, struct pair s) { if (s.a > 5) return 0; EIGHT(s.b) return a * 7; }`},
		{"other bits", `N long f(long a, unsigned v) { unsigned char c = v; q += "a string to read from"[c & 15]; if (c > 2) return c; EIGHT(v >> 8) return a * 7; }`},
		{"beneath pushes", `unsigned m1, m2; N long many(int a, int b, int c, int d, int e, int g, int h, int i) { return q += h + i; }
			N long f(long a, unsigned v) { unsigned xs[6]; for (int i = 0; i < 6; i++) set(xs + i, v + i); if (xs[5] <= 3) { many(1, 2, 3, 4, 5, 6, m1, m2); EIGHT(xs[1]) } return a * 7; }`},
		{"beneath flags", `N long f(long a, unsigned v) { unsigned xs[6]; for (int i = 0; i < 6; i++) set(xs + i, v + i); if (xs[5] <= 3) { q += __builtin_ia32_readeflags_u64(); EIGHT(xs[4]) EIGHT(xs[3]) } return a * 7; }`},
	} {
		observed := 0
		for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-no-pie", "-fno-pie"}} {
			r := routine(t, recoverFile(t, compile(t, eight+test.source+callees, flags...)), "f")
			if r.LeftOut != "" {
				continue
			}
			observed++
			if ways := switchWays(r); len(ways) == 0 || ways[0] < 8 {
				t.Errorf("%s, %q: switches of %d ways, want 8", test.name, flags, ways)
			}
		}
		if observed < 3 {
			t.Errorf("%s: left out but for %d builds of five", test.name, observed)
		}
	}
}

// A difference of a byte wraps around: a bound on what is subtracted from is none on it.
func TestDifferenceWrapsAround(t *testing.T) {
	const source = `
		__asm__(".globl wraps\n.type wraps,@function\nwraps: .cfi_startproc\nand $3,%edi\nlea -2(%rdi),%eax\nmovzbl %al,%eax\nlea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
			"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n4: mov $4,%eax\nret\n10:\n.cfi_endproc\n.size wraps,.-wraps\n"
			".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b\n.rept 252\n.long 10b-9b\n.endr\n.long 3b-9b, 4b-9b, 0\n.text\n");`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1")), "wraps")
	if ways := switchWays(r); !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") && !slices.Equal(ways, []int{4}) {
		t.Errorf("switches of %d ways, want 4; left out: %q", ways, r.LeftOut)
	}
}

// A table may have more entries than are read of one without a bound.
func TestLongTables(t *testing.T) {
	const source = `
		__asm__(".globl long_table\n.type long_table,@function\nlong_table: .cfi_startproc\nmov %edi,%eax\nBOUND lea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n1: nop\n2: ret\n3: mov $3,%eax\nret\n.cfi_endproc\n.size long_table,.-long_table\n"
			".section .rodata\n.p2align 2\n9: .rept 4999\n.long 1b-9b\n.endr\n.long 3b-9b, 0\n.text\n");`
	for bound, want := range map[string]int{"cmp $4999,%eax\\nja 2f\\n": 2, "": 0} {
		r := routine(t, recoverFile(t, compile(t, strings.ReplaceAll(source, "BOUND", bound)+callees, "-O1")), "long_table")
		if ways := switchWays(r); want > 0 && (r.LeftOut != "" || !slices.Equal(ways, []int{want})) || want == 0 && !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("bound by %q: switches of %d ways; left out: %q", bound, ways, r.LeftOut)
		}
	}
}

// An address within a table may be another object's, less what an index or a pointer begins with.
func TestTablesNamedByOthers(t *testing.T) {
	const source = eight + `
		static const long longs[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
		static const int ints[7] = { 3, 1, 4, 5, 9, 2, 6 };
		N long element(long i) { return longs[i - 1] * 3; }
		N void backwards(void) { for (const int *p = ints + 6; p >= ints; p--) { q += *p; __asm__ volatile(""); } }
		N long f(long a, unsigned long x) { EIGHT(x) return a; }
		N long from_three(long a, unsigned long x) {
			switch (x) {
			case 3: q += 4; a++; break; case 4: q ^= 8; a *= 3; break; case 5: q -= 2 * a; break; case 6: q = a / 5; break;
			case 7: q *= 5; break; case 8: q += 7; a |= 6; break; default: __builtin_unreachable(); }
			return a - q;
		}
		N long labels(long a, int y) {
			static const void *const u[] = { &&a, &&b, &&c, &&d };
			goto *u[y - 2];
			a: q += a; b: a = a * 3 + q; c: q ^= a; a += 9; d: return a ^ q;
		}
		void *called[] = { element, backwards, f, from_three, labels };`
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-no-pie", "-fno-pie"}, {"-Os", "-no-pie", "-fno-pie"}} {
		p := recoverFile(t, compile(t, source+callees, flags...))
		for symbol, want := range map[string]int{"f": 8, "from_three": 6, "labels": 4} {
			r := routine(t, p, symbol)
			if ways := switchWays(r); r.LeftOut != "" || len(ways) != 1 || ways[0] < want {
				t.Errorf("%s, %q: switches of %d ways, want %d; left out: %q", symbol, flags, ways, want, r.LeftOut)
			}
		}
	}
}

// A table of no known length is read through entries that other code names, be they holes, as far as they lead into the
// routine: what lies behind may begin with an index of its own.
func TestNamedEntries(t *testing.T) {
	const source = `
		#define TABLE(name, anchor, named, entries) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ": .cfi_startproc\nsub $8,%rsp\n.cfi_adjust_cfa_offset 8\n" \
			"mov %edi,%eax\nlea table_of_" #name "(%rip),%rcx\nmovslq (%rcx,%rax,4),%rax\nlea " anchor "(%rip),%rdx\nadd %rdx,%rax\njmp *%rax\n" \
			"1: inc %edx\n2: inc %edx\n3: inc %edx\n4: inc %edx\n5: call abort\n9:\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
			".section .rodata\n.p2align 2\ntable_of_" #name ": .long " entries "\n.long 0x3000000, 0x4000000, 0x5000000\n.text\n" \
			".globl names_" #name "\nnames_" #name ": .cfi_startproc\nlea table_of_" #name "+" named "(%rip),%rax\nret\n.cfi_endproc\n");
		TABLE(last, "1f", "16", "1b-1b, 2b-1b, 3b-1b, 4b-1b, 5b-1b")
		TABLE(middle, "1f", "8", "1b-1b, 2b-1b, 3b-1b, 4b-1b, 5b-1b")
		TABLE(hole, "1f", "12", "1b-1b, 2b-1b, 3b-1b, 9b-1b, 4b-1b, 5b-1b")
		TABLE(own_last, "table_of_own_last", "16", "1b-table_of_own_last, 2b-table_of_own_last, 3b-table_of_own_last, 4b-table_of_own_last, 5b-table_of_own_last")
		TABLE(own_hole, "table_of_own_hole", "12", "1b-table_of_own_hole, 2b-table_of_own_hole, 3b-table_of_own_hole, 9b-table_of_own_hole, 4b-table_of_own_hole, 5b-table_of_own_hole")`
	p := recoverFile(t, compile(t, source+callees, "-O1"))
	for _, symbol := range []string{"last", "middle", "hole", "own_last", "own_hole"} {
		r := routine(t, p, symbol)
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{5}) {
			t.Errorf("%s: switches of %d ways, want 5; left out: %q", symbol, ways, r.LeftOut)
		}
	}
}

// Clang gives each state of a machine a copy of the switch, on a number then, and reads the table by its distance from a
// base that other blocks have loaded.
func TestSwitchOnNumber(t *testing.T) {
	const source = `
		__asm__(".globl states\n.type states,@function\nstates: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\nlea 9f(%rip),%rdx\ntest %edi,%edi\nje 3f\n"
			"xor %eax,%eax\nmov %eax,%ebx\nmovslq (%rdx,%rbx,4),%rcx\nadd %rdx,%rcx\njmp *%rcx\n"
			"1: inc %esi\ntest %esi,%edi\nje 4f\nmov $2,%ebx\nmovslq (%rdx,%rbx,4),%rcx\nadd %rdx,%rcx\njmp *%rcx\n"
			"2: dec %esi\nje 4f\nmovslq 8(%rdx),%rcx\nadd %rdx,%rcx\njmp *%rcx\n"
			"3: lea 9f+4(%rip),%rbx\nmovslq (%rbx),%rcx\nlea 9f(%rip),%rbx\nadd %rbx,%rcx\njmp *%rcx\n"
			"4: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size states,.-states\n"
			".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b, 3b-9b, 0x4000000\n.text\n");`
	for _, flags := range [][]string{nil, {"-no-pie"}} {
		r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "states")
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{3, 3, 3, 3}) {
			t.Errorf("%q: switches of %d ways, want 3 four times; left out: %q", flags, ways, r.LeftOut)
		}
	}
}

// The cold cases of a switch may be one part of it, of which no case is the beginning.
func TestColdPartOfTwoCases(t *testing.T) {
	const source = `
		__asm__(".globl cold_two\n.type cold_two,@function\ncold_two: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\ncmp $2,%edi\nja 1f\nmov %edi,%edi\nlea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rdi,4),%rax\nadd %rcx,%rax\njmp *%rax\n1: pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size cold_two,.-cold_two\n"
			".section .text.unlikely\n.cfi_startproc\n.cfi_def_cfa_offset 16\n4: call note\nnop\n2: call note\n3: call abort\n.cfi_endproc\n"
			".section .rodata\n.p2align 2\n9: .long 2b-9b, 1b-9b, 3b-9b, 0\n.text\n");`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1")), "cold_two")
	if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{3}) {
		t.Errorf("switches of %d ways, want 3; left out: %q", ways, r.LeftOut)
	}
}

// The least index of a table may be negative, so that code names a place in its middle, or more than nought, where what
// lies before it is of no table.
func TestLeastIndex(t *testing.T) {
	const source = eight + `
		N long from_minus_three(long a, long x) {
			switch (x) {
			case -3: a += q; break; case -2: a ^= q + 5; break; case -1: q += a; a += 3; break; case 0: a *= 3; q++; break;
			case 1: a -= q; break; case 2: a |= q; q ^= 7; break; case 3: q += 9 * a; break; default: __builtin_unreachable(); }
			return a * 7;
		}
		N long distances(long a, unsigned long y) {
			static const int t[] = { &&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a, &&f - &&a, &&g - &&a, &&h - &&a };
			goto *(&&a + t[y - 2]);
			a: q += a; b: a = a * 3 + q; c: q ^= a; a += 9; d: a ^= q; e: a -= q; f: q++; a *= 5; g: q = a / 3; h: a += 7 * q; return a - q;
		}
		void *called[] = { from_minus_three, distances };`
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-Os"}} {
		p := recoverFile(t, compile(t, source+callees, flags...))
		for symbol, want := range map[string]int{"from_minus_three": 7, "distances": 8} {
			r := routine(t, p, symbol)
			if ways := switchWays(r); r.LeftOut != "" || len(ways) != 1 || ways[0] < want {
				t.Errorf("%s, %q: switches of %d ways, want %d; left out: %q", symbol, flags, ways, want, r.LeftOut)
			}
		}
	}
}

// Who cannot tell where a table ends, or where it lies, leaves the routine out: its jump is none out of the routine.
func TestTablesOfUnknownExtent(t *testing.T) {
	const source = eight + `
		static const long longs[3] = { 5, 6, 7 };
		N long backwards(void) { long a = 0; for (const long *p = longs + 2; p >= longs; p--) { a += *p; __asm__ volatile(""); } return a; }
		N long element(long i) { return longs[i - 1]; }
		N long distances(long a, unsigned long y) {
			static const int t[] = { &&a - &&a, &&b - &&a, &&c - &&a, &&d - &&a, &&e - &&a, &&f - &&a, &&g - &&a, &&h - &&a };
			goto *(&&a + t[y]);
			a: q += a; b: a = a * 3 + q; c: q ^= a; a += 9; d: a ^= q; e: a -= q; f: q++; a *= 5; g: q = a / 3; h: a += 7 * q; return a - q;
		}
		N long from_sixty(long a, unsigned long x, unsigned long y) {
			EIGHT(x & 7)
			switch (y) {
			case 64: q += 4; a++; break; case 65: q ^= 8; a *= 3; break; case 66: q -= 2 * a; break; case 67: q = a / 5; break;
			case 68: q *= 5; break; case 69: q += 7; a |= 6; break; default: __builtin_unreachable(); }
			return a - q;
		}
		void *called[] = { backwards, element, distances, from_sixty };`
	for _, flags := range [][]string{{"-O1"}, {"-Os"}, {"-O1", "-no-pie", "-fno-pie"}, {"-Os", "-no-pie", "-fno-pie"}} {
		p := recoverFile(t, compile(t, source+callees, flags...))
		for symbol, want := range map[string][]int{"distances": {8}, "from_sixty": {6, 8}} {
			r := routine(t, p, symbol)
			ways := switchWays(r)
			short := len(ways) < len(want) || slices.ContainsFunc(ways, func(n int) bool { return n < want[0] })
			if r.LeftOut == "" && short || r.LeftOut != "" && !strings.Contains(r.LeftOut, "unresolved indirect jump") && !strings.Contains(r.LeftOut, "address taken") {
				t.Errorf("%s, %q: switches of %d ways, want %d; left out: %q", symbol, flags, ways, want, r.LeftOut)
			}
		}
	}
}

// A place in memory that was compared holds something else when what may lie there has been written, or when another
// place has its name by then. Other code names the table's third entry, as if another object began there.
func TestComparedPlaceIsWritten(t *testing.T) {
	const source = `
		#define PLACE(name, first, place, between) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ": .cfi_startproc\nsub $136,%rsp\n.cfi_adjust_cfa_offset 136\n" first \
			"mov " place ",%eax\ncmp $1,%eax\nja 7f\n" between "lea table_of_" #name "(%rip),%rcx\nmovslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n" \
			"1: inc %edx\n2: inc %edx\n3: inc %edx\n4: inc %edx\n5: inc %edx\n7: add $136,%rsp\n.cfi_adjust_cfa_offset -136\nret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
			".section .rodata\n.p2align 2\ntable_of_" #name ": .long 1b-table_of_" #name ", 2b-table_of_" #name ", 3b-table_of_" #name ", 4b-table_of_" #name ", 5b-table_of_" #name ", 0\n.text\n" \
			".globl names_" #name "\nnames_" #name ": .cfi_startproc\nlea table_of_" #name "+8(%rip),%rax\nret\n.cfi_endproc\n");
		#define AGAIN "mov 72(%rsp),%eax\n"
		PLACE(nothing, "", "72(%rsp)", "mov %esi,80(%rsp)\n" AGAIN)
		PLACE(call, "lea 72(%rsp),%rdi\n", "72(%rsp)", "call note\n" AGAIN)
		PLACE(pointer, "lea 72(%rsp),%rdi\n", "72(%rsp)", "mov %esi,(%rdi)\n" AGAIN)
		PLACE(beneath, "lea 72(%rsp),%rdi\n", "(%rdx)", "mov %esi,72(%rsp)\nmov (%rdx),%eax\n")
		PLACE(element, "", "72(%rsp)", "mov %esi,(%rsp,%rdi,4)\n" AGAIN)
		PLACE(byte_element, "", "72(%rsp)", "mov %sil,8(%rsp,%rdi)\n" AGAIN)
		PLACE(masked_move, "lea 72(%rsp),%rdi\n", "72(%rsp)", "maskmovdqu %xmm1,%xmm0\n" AGAIN)
		PLACE(bit, "", "72(%rsp)", "bts %rdi,8(%rsp)\n" AGAIN)
		PLACE(wide, "", "72(%rsp)", "vmovdqu64 %zmm0,64(%rsp)\n" AGAIN)
		PLACE(push, "", "72(%rsp)", "push 8(%rsp)\n.cfi_adjust_cfa_offset 8\n" AGAIN "add $8,%rsp\n.cfi_adjust_cfa_offset -8\n")
		PLACE(flags, "", "72(%rsp)", "pushf\n.cfi_adjust_cfa_offset 8\n" AGAIN "add $8,%rsp\n.cfi_adjust_cfa_offset -8\n")`
	p := recoverFile(t, compile(t, source+callees, "-O1"))
	for symbol, want := range map[string]int{
		"nothing": 2, "call": 5, "pointer": 5, "beneath": 5, "element": 5, "byte_element": 5, "masked_move": 5, "bit": 5, "wide": 5, "push": 5, "flags": 5,
	} {
		r := routine(t, p, symbol)
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{want}) {
			t.Errorf("%s: switches of %d ways, want %d; left out: %q", symbol, ways, want, r.LeftOut)
		}
	}
}

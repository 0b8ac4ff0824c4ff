package cfg_test

import (
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// pointers is a program of jumps to labels through pointers.
const pointers = `
#include <stdio.h>
#define F __attribute__((noinline,noclone))
volatile int sink, zero;
F int note(int x) { sink += x; return sink; }
F int variable(unsigned n) {
	void *state = &&even; int r = 0;
	for (; n; n--) { goto *state; even: r += n; state = r & 4 ? &&odd : &&even; sink++; continue; odd: r ^= n << 3; state = n % 3 ? &&third : &&even; continue; third: r -= 7; state = &&even; }
	return r;
}
F long machine(const char *s) {
	void *state = &&begins; long v = 0;
	for (; *s; s++) { goto *state; begins: if (*s == 'a') state = &&in_a; else if (*s == 'b') state = &&in_b; v += 1; continue; in_a: if (*s == 'b') state = &&in_b; else state = &&begins; v += 10; continue;
		in_b: state = *s == 'c' ? &&ends : &&in_a; v += 100; continue; ends: v += 1000; state = &&begins; }
	return v;
}
void *other;
F void change(void **p) { if (sink & 1) *p = other; }
F int changed(unsigned n) {
	void *state = &&even; int r = 0; other = &&odd;
	for (; n; n--) { change(&state); goto *state; even: r += n; state = &&odd; continue; odd: r ^= n << 3; state = &&even; }
	return r;
}
F int rewritten(const unsigned char *p, int turn) {
	static void *table[4] = {&&one, &&two, &&one, &&two};
	int r = 0;
	if (turn) table[2] = &&three;
	for (; *p != 9; p++) { if (*p == 4) goto three; if (*p > 3) { r += 1000; continue; } goto *table[*p]; one: r += 1; continue; two: r *= 3; continue; three: r ^= 5; }
	return r;
}
int main(int c, char **v) { printf("%d\\n", variable(40) + (int)machine("abcabb") + changed(2) + rewritten((unsigned char *)"\\1\\2\\4\\9", c)); return 0; }
`

// A jump to what a variable was given leads to one of these labels, or to any of the routine where a
// call may have changed it. A table that can be written may hold any label of the routine.
func TestLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O1", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compile(t, pointers, flags...))
			for symbol, labels := range map[string]int{"variable": 3, "machine": 4, "changed": 2, "rewritten": 3} {
				r := routine(t, p, symbol)
				got := 0
				for b := range r.Blocks {
					if r.Blocks[b].End == cfg.Table {
						got = len(r.Blocks[b].Succ)
					}
				}
				if got != labels || (r.LeftOut == "") != (labels > 0) {
					t.Errorf("%s: a jump to %d labels, not %d; left out: %q", symbol, got, labels, r.LeftOut)
				}
			}
		})
	}
}

// stored is a program of jumps to labels that a table holds, through pointers that were read from
// it before, where no frame is; and of a switch beside a tail call through a pointer.
const stored = `
struct state { const void *next; unsigned op; int n; int (*call)(int); };
#define F __attribute__((noinline,noclone))
F int threaded(const void *const *ip, unsigned op, const void *const **out) {
	static const void *const t[] = {&&a, &&b, &&c, &&d}; int s = op;
	if (out) { *out = t; return 0; }
	goto *t[op & 3];
	a: s += 2; goto **ip++; b: s *= 3; goto **ip++; c: s ^= s >> 3; goto **ip++; d: return s;
}
F int resumed(struct state *p) {
	static const void *const t[] = {&&s0, &&s1, &&s2};
	if (p->next) goto *p->next;
	goto *t[p->op % 3];
	s0: p->next = &&s1; return ++p->n; s1: if (p->n & 1) { p->next = &&s2; return p->n += 2; } p->next = &&s0; return p->n; s2: p->next = 0; p->op++; return p->n -= 1;
}
F int switched(struct state *p) {
	switch (p->op) { case 0: return p->n * 3; case 1: p->n++; break; case 2: p->n ^= 5; break; case 3: return 7; case 4: p->n -= 9; break; case 5: return -1; case 6: p->n *= 9; }
	return p->call(p->n);
}
int folded(unsigned n);
__asm__(".globl folded\n.type folded,@function\nfolded: .cfi_startproc\nlea table(%rip), %r8\nand $1, %edi\njmp *(%r8,%rdi,8)\n"
	"1: xor %edi, %edi\ntest $4, %sil\nje 2f\njmp *(%r8,%rdi,8)\n2: mov %esi, %eax\nret\n.cfi_endproc\n.size folded, .-folded\n"
	".globl given\n.type given,@function\ngiven: .cfi_startproc\nlea 8f(%rip), %rax\ntest %edi, %edi\nje 9f\nmov (%rsi), %rdx\nmov %rax, (%rsi)\njmp *%rdx\n9: jmp *%rax\n8: ret\n.cfi_endproc\n.size given, .-given\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\ntable: .quad 1b, 2b\n.text\n");
int sends(int n, unsigned k), tags(int n), marks(int n);
__asm__(".globl sends\n.type sends,@function\nsends: .cfi_startproc\ntest %edi, %edi\njs 7f\nmov %esi, %esi\nlea (%rsi,%rsi,2), %rax\nlea records(%rip), %rdx\nmov (%rdx,%rax,8), %rax\njmp *%rax\n.cfi_endproc\n.size sends, .-sends\n"
	".globl tags\n.type tags,@function\ntags: .cfi_startproc\nadd $1, %edi\n7: mov %edi, %eax\nret\n.cfi_endproc\n.size tags, .-tags\n"
	".globl marks\n.type marks,@function\nmarks: .cfi_startproc\nadd $2, %edi\njs 7b\nmov %edi, %eax\nret\n.cfi_endproc\n.size marks, .-marks\n"
	".section .data.rel.ro,\"aw\"\n.balign 8\nrecords: .quad tags,1,2, switched,3,4, marks,5,6, folded,7,8\n.text\n");
int ahead(const unsigned char *pc, int n), elsewhere(unsigned n, unsigned m);
__asm__(".globl ahead\n.type ahead,@function\nahead: .cfi_startproc\nlea steps(%rip), %r8\nmovzbl (%rdi), %eax\nlea (%r8,%rax,8), %rdx\n"
	"1: dec %esi\njs 3f\njmp *(%rdx)\n2: inc %rdi\njmp 1b\n4: movzbl 2(%rdi), %eax\nadd $2, %rdi\nlea (%r8,%rax,8), %rdx\njmp *(%rdx)\n"
	"3: mov %esi, %eax\nret\n.cfi_endproc\n.size ahead, .-ahead\n.section .data.rel.ro,\"aw\"\n.balign 8\nsteps: .quad 2b, 4b, 3b\n.text\n");
#define PUSH "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n"
#define POP "pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_def_cfa_offset 16\n"
__asm__(".globl elsewhere\n.type elsewhere,@function\nelsewhere: .cfi_startproc\n" PUSH "lea 9f(%rip), %rbx\nmov %edi, %edi\nmov %esi, %esi\ncmp $3, %edi\nja 1f\n"
	"lea 5f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\njmp *%rax\n1: cmp $1, %esi\nja 3f\nlea 6f(%rip), %rdx\nmovslq (%rdx,%rsi,4), %rbx\nadd %rdx, %rbx\n"
	"2: jmp *%rbx\n3: mov $1, %eax\n" POP "4: mov $2, %eax\n" POP ".cfi_endproc\n.size elsewhere, .-elsewhere\n"
	".section .text.unlikely,\"ax\"\n.cfi_startproc\nud2\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\n9: mov $100, %eax\n" POP ".cfi_endproc\n"
	".section .rodata\n.balign 4\n5: .long 2b-5b, 3b-5b, 4b-5b, 3b-5b\n6: .long 3b-6b, 4b-6b\n.text\n");
int main(int c, char **v) {
	const void *const *t; struct state p = {0, c, c, 0};
	threaded(0, 0, &t);
	return threaded(t, c, 0) + resumed(&p) + switched(&p) + folded(c) + ahead((const unsigned char *)v, c) + elsewhere(c, c) + sends(c, c) + tags(c) + marks(c);
}
`

// A jump through a pointer to a label was taken for one out of the routine, where a table with all
// labels was known; an element of it whose index is known is none.
func TestStoredLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O2"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O3", "-fno-pie", "-no-pie", "-fcf-protection=full"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compile(t, stored, flags...))
			for symbol, want := range map[string]struct {
				observed bool
				tails    bool
			}{"threaded": {false, false}, "resumed": {false, false}, "switched": {true, true}, "folded": {true, false}, "given": {false, false}, "ahead": {true, false}, "elsewhere": {false, false}, "sends": {true, true}} {
				r := routine(t, p, symbol)
				if got := ends(r)[cfg.TailInd]; (r.LeftOut == "") != want.observed || got > 0 != want.tails {
					t.Errorf("%s: left out: %q, %d indirect tail jumps, want %+v", symbol, r.LeftOut, got, want)
				}
			}
		})
	}
}

// amidCode is a program of a jump through one of two tables, of which one lies behind its routine and is named by where an
// element before its first would lie, amid code, by a block that a jump leads from.
const amidCode = `
int amid(unsigned n, unsigned m);
__asm__(".globl amid\n.type amid,@function\namid: .cfi_startproc\npush %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3,-16\nmov %edi, %edi\nmov %esi, %esi\ncmp $3, %edi\nja 1f\n"
	"lea 5f(%rip), %rdx\nmovslq (%rdx,%rdi,4), %rax\nadd %rdx, %rax\nmov $7f-8, %ecx\njmp *%rax\n1: cmp $1, %esi\nja 3f\nmov $6f, %ecx\n2: jmp *(%rcx,%rsi,8)\n3: mov $1, %eax\njmp 0f\n"
	"8: mov $3, %eax\njmp 0f\n9: mov $100, %eax\njmp 0f\n4: mov $2, %eax\n.balign 8\n0: pop %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size amid, .-amid\n"
	".balign 8\n7: .quad 8b, 9b\n.section .rodata\n.balign 8\n6: .quad 3b, 4b\n5: .long 2b-5b, 3b-5b, 4b-5b, 3b-5b\n.text\n");
int main(int c, char **v) { return amid(c, c); }
`

// What a jump's register holds where it leads is its target's address, and says nothing of a table that
// another register names.
func TestTableAmidCode(t *testing.T) {
	r := routine(t, recoverFile(t, compile(t, amidCode, "-fno-pie", "-no-pie")), "amid")
	if ways := switchWays(r); r.LeftOut != "" || len(ways) != 2 || ways[1] < 4 {
		t.Errorf("switches of %d ways, want two, one of them of four or more; left out: %q", ways, r.LeftOut)
	}
}

// labelsBefore is a program with a routine f whose table of labels that of g follows, the labels of
// which are in a part that ends so.
func labelsBefore(part, end string) string {
	return strings.NewReplacer("PART", part, "ENDS", end).Replace(beginEnd + `#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define GO(table) "lea " #table "(%rip),%rdx\nmov (%rdx,%rdi,8),%rax\njmp *%rax\n"
__asm__(".section .text.unlikely,\"ax\"\n.type PART,@function\nPART:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n1: call abort\n2: call abort\n3: ENDS\n.cfi_endproc\n.size PART,.-PART\n.text\n"
	BEGIN(f) PUSH GO(of_f) "4: mov $1,%eax\n" POP "5: mov $2,%eax\n" POP "6: mov $3,%eax\n" POP END(f)
	BEGIN(g) PUSH GO(of_g) "g_back: mov $4,%eax\n" POP END(g)
	".section .data.rel.ro,\"aw\"\n.p2align 3\nof_f: .quad 4b, 5b, 6b\nof_g: .quad 2b, 1b, 3b\n.text\n");
int f(long), g(long);
int main(int c, char **v) { return f(c) + g(c); }`)
}

// A table of labels may go on where another seems to begin, which leads into a part to which nothing else does, whatever
// its name: linkers fold parts that are the same. It ends before one that leads into a part which jumps back into another
// routine.
func TestLabelsBeforeAnothersPart(t *testing.T) {
	for _, test := range []struct {
		part, leftOut  string
		back, stripped bool
	}{
		{part: "g.cold", leftOut: "unresolved indirect jump"},
		{part: "f.cold", leftOut: "unresolved indirect jump"},
		{part: "g.cold", stripped: true, leftOut: "unresolved indirect jump"},
		{part: "g.cold", back: true},
		{part: "g.cold", back: true, stripped: true},
	} {
		end := "call abort"
		if test.back {
			end = "jmp g_back"
		}
		path := compile(t, labelsBefore(test.part, end), "-O1")
		p := recoverFile(t, path)
		r := routine(t, p, "f")
		if test.stripped {
			if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
				t.Fatalf("strip: %v\n%s", err, b)
			}
			r = recoverFile(t, path).At(r.Addr)
		}
		if !strings.HasPrefix(r.LeftOut, test.leftOut) || test.leftOut == "" && (r.LeftOut != "" || fewest(r) != 3) {
			t.Errorf("before %s, stripped %v, back %v: left out: %q, want %q; the jump has %d targets", test.part, test.stripped, test.back, r.LeftOut, test.leftOut, fewest(r))
		}
	}
}

// What a table of which it is not known where it ends may lead to, or a jump of which nothing is known, is left out with the
// routine that has it, though its own routine jumps there, too.
func TestPartOfTwo(t *testing.T) {
	source := func(table string) string {
		return beginEnd + `
#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
__asm__(".section .text.unlikely,\"ax\"\n.type g.cold,@function\ng.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\n1: call abort\n.cfi_endproc\n.size g.cold,.-g.cold\n.text\n"
	BEGIN(f) PUSH "` + table + `\nmov (%rdx,%rdi,8),%rax\njmp *%rax\n4: mov $1,%eax\n" POP "5: mov $2,%eax\n" POP "6: mov $3,%eax\n" POP END(f)
	BEGIN(g) PUSH "test %edi,%edi\njz g.cold\nmov $4,%eax\n" POP END(g)
	".section .data.rel.ro,\"aw\"\n.p2align 3\nof_f: .quad 4b, 5b, 6b, 1b\n.text\n");
int f(long), g(long); void *volatile table;
int main(int c, char **v) { return f(c) + g(c); }`
	}
	for _, table := range []string{"lea of_f(%rip),%rdx", "mov table(%rip),%rdx"} {
		path := compile(t, source(table), "-O1")
		named := recoverFile(t, path)
		if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, b)
		}
		stripped := recoverFile(t, path)
		for symbol, leftOut := range map[string]string{"f": "unresolved indirect jump", "g": "jumped to in its middle"} {
			r := routine(t, named, symbol)
			if s := stripped.At(r.Addr); !strings.HasPrefix(r.LeftOut, leftOut) || !strings.HasPrefix(s.LeftOut, leftOut) {
				t.Errorf("%s: %s: left out: %q, stripped: %q, want %q", table, symbol, r.LeftOut, s.LeftOut, leftOut)
			}
		}
	}
}

// Direct-threaded code jumps to labels that memory holds: to any that the routine has, if data names all of them or code
// does nothing but store one.
func TestThreadedCode(t *testing.T) {
	const machine = `N long f(struct op *pc, long a) { long s[8] = { 0 }; int n = 0; if (!pc) { LABELS return 0; } goto *pc->h;
		A: a += q + s[n & 7]; s[n++ & 7] = h(a); pc++; goto *pc->h; B: a ^= 3; q++; if (a & 1) pc++; pc++; goto *pc->h; C: a *= 3; h(a); pc++; goto *pc->h; X: return a + s[n & 7]; }
		struct op code[64]; void translate(const unsigned char *p, int n) { for (int i = 0; i < n; i++) code[i].h = op[p[i]]; }`
	for _, c := range []struct {
		name, labels string
		observed     int // of four builds
	}{
		{"of a table", "static void *const t[] = { &&A, &&B, &&C, &&X }; op = t;", 4},
		{"of records", "static const struct { char c; void *h; } __attribute__((packed)) t[] = { { 1, &&A }, { 2, &&B }, { 3, &&C }, { 4, &&X } }; records = t; if (q) { goto A; } if (a) { goto B; } if (a & 2) { goto C; } if (a & 4) goto X;", 4},
		{"of a table, and one stored", "static void *const t[] = { &&A, &&B, &&C }; op = t; halt.h = &&X;", 4},
		{"stored", "halt.h = &&X; held[0].h = &&A; held[1].h = &&B; held[2].h = &&C;", 2}, // in pairs, by vector instructions
		{"of distances", "static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&X - &&A }; for (int i = 0; i < 4; i++) ops[i] = &&A + t[i];", 0},
		{"of distances from one that was stored", "static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&X - &&A }; base = &&A; halt.h = &&X; for (int i = 0; i < 4; i++) ops[i] = base + t[i];", 0},
		{"of distances in place", "static const long t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&X - &&A }; halt.h = &&X; for (int i = 0; i < 4; i++) ops[i] += t[i];", 0},
		{"of a table, by a place for jumps from elsewhere", "static void *const t[] = { &&A, &&B, &&C, &&X }; op = t; __asm__ volatile(\"mov %%rsp, %0\" : \"=m\"(held[0].h));", 0},
	} {
		source, observed := labels+`struct op { void *h; } held[4], halt; void *const *op; void *ops[4], *volatile base; const void *records; N long h(long a) { return q += a; }`+strings.Replace(machine, "LABELS", c.labels, 1), 0
		for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O2", "-fno-pie", "-no-pie"}} {
			r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "f")
			switch n := fewest(r); {
			case r.LeftOut == "" && n < 4:
				t.Errorf("labels %s, %q: a jump of %d ways, want 4", c.name, flags, n)
			case r.LeftOut == "":
				observed++
			}
		}
		if observed != c.observed {
			t.Errorf("labels %s: observed in %d builds, want %d", c.name, observed, c.observed)
		}
	}
}

// A label may begin the cold part of its routine.
func TestLabelBeginsColdPart(t *testing.T) {
	const source = `struct op { void *h; } code[40]; void *const *ops; N long h(long a) { return q += a; }
		N __attribute__((cold)) long ch(long a) { return q += a * 2; } N __attribute__((cold)) long cc(long a) { return q ^= a; }
		N long f(struct op *pc, long a) { static void *const t[] = { &&A, &&B, &&C, &&X, &&Y }; long s[8] = { 0 }; int n = 0; if (!pc) { ops = t; return 0; } goto *pc->h;
		A: a += q + s[n & 7]; s[n++ & 7] = h(a); pc++; goto *pc->h; B: a ^= 3; q++; if (a & 1) q += 5; pc++; goto *pc->h; C: a *= 3; ch(a), cc(a); if (a & 2) q++; pc++; goto *pc->h;
		Y: a *= 5; ch(a), cc(a); if (a & 4) { q++; return a + 7; } pc++; return a + s[n & 7]; X: return a + s[n & 7]; }`
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-fno-pie", "-no-pie"}} {
		p := recoverFile(t, compile(t, labels+source+callees, flags...))
		r := routine(t, p, "f")
		if n := fewest(r); r.LeftOut != "" || n != 5 || flags[0] == "-O2" && len(r.Ranges) != 2 {
			t.Errorf("%q: in %d parts, jumps of %d ways, want 5; left out: %q", flags, len(r.Ranges), n, r.LeftOut)
		}
	}
}

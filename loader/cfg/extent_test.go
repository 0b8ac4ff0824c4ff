package cfg_test

import (
	"strconv"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// labels has what computed gotos need.
const labels = `
	#define N __attribute__((noinline))
	#define GO(table) goto *table[*pc++]
	#define OFF(table) goto *(&&A + table[*pc++])
	volatile long q = 1;
	`

// fewest returns the number of ways of the switch of a routine that has the fewest; a jump out of the routine has none.
func fewest(r *cfg.Routine) int {
	ways := switchWays(r)
	if ends(r)[cfg.TailInd] > 0 || len(ways) == 0 {
		return 0
	}
	return ways[0]
}

// A table is read whole, or its routine left out: it may have gaps, hold the routine's beginning, be another than it was,
// be filled anew, or be packed, and labels may be kept elsewhere.
func TestTablesOfLabels(t *testing.T) {
	for _, test := range []struct {
		name, source string
		ways         int
		observed     int // of seven builds
	}{
		{"gap", `N long f(const unsigned char *pc, long a) { static void *const t[128] = { [1] = &&A, [2] = &&B, [3] = &&C, [4] = &&X, [0x40] = &&D };
			GO(t); A: a += q; GO(t); B: a ^= 3; q++; GO(t); C: a *= 3; if (a & 1) goto D; GO(t); D: a -= q * 5; q += 2; GO(t); X: return a; }`, 5, 7},
		{"masked gap", `N long f(const unsigned char *pc, long a) { static const void *const t[64] = { [1] = &&A, [2] = &&B, [3] = &&C, [32] = &&D, [63] = &&X };
			for (;;) { const void *h = t[*pc++ & 63]; if (!h) continue; goto *h;
			A: a += q; continue; B: a ^= 3; q++; if (a & 1) goto D; continue; C: a *= 3; if (a & 4) goto X; continue; D: a -= q * 5; q += 2; continue; X: return a; } }`, 5, 7},
		{"gap of distances", `N long f(const unsigned char *pc, long a) { static const int t[32] = { [0 ... 31] = -1, [1] = &&A - &&A, [2] = &&B - &&A, [3] = &&X - &&A, [31] = &&D - &&A };
			OFF(t); A: a += q; OFF(t); B: a ^= 3; q++; if (a & 1) goto D; OFF(t); D: a -= q * 5; q += 2; OFF(t); X: return a; }`, 4, 7},
		{"gap of distances and name", `N long f(const unsigned char *pc, long a, int k) { static const struct op { int off, n; } t[] = { { &&A - &&A, 1 }, { &&B - &&A, 2 }, { &&X - &&A, 1 }, { -1, 0 }, { -1, 0 }, { &&C - &&A, 3 }, { &&D - &&A, 2 } };
			if (k) { for (const struct op *p = t + 4; p < t + 7; p++) q += p->n; return q; } OFFSET: goto *(&&A + t[*pc++].off); A: a += q; goto OFFSET; B: a ^= 3; q++; goto OFFSET; C: a *= 3; goto OFFSET; D: a -= q * 5; q += 2; goto OFFSET; X: return a; }`, 5, 7},
		{"distances from a thousand on", `N long f(const long *pc, long a) { static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&D - &&A, &&X - &&A };
			OFFSET: goto *(&&A + t[*pc++ - 1000]); A: a += q; goto OFFSET; B: a ^= 3; q++; goto OFFSET; C: a *= 3; goto OFFSET; D: a -= q * 5; q += 2; goto OFFSET; X: return a; }`, 5, 1},
		{"gap and name", `N long f(const unsigned char *pc, long a) { static void *const t[] = { &&A, &&B, 0, &&C, &&D, &&X };
			GO(t); A: a += q; GO(t); B: a ^= 3; q++; GO((t + 3)); C: a *= 3; GO(t); D: a -= q * 5; q += 2; GO(t); X: return a; }`, 5, 7},
		{"beginning of the routine", `const unsigned char *volatile pc; N void f(void) { static void *const t[] = { &&B, &&D, &&X, &&A, &&C };
			A: q++; GO(t); B: q ^= 3; if (q & 1) goto D; if (q & 2) goto C; GO(t); C: q *= 3; GO(t); D: q -= 5; GO(t); X: return; }`, 5, 2},
		{"gap and beginning", `const unsigned char *volatile pc; N void f(void) { static void *const t[] = { &&B, &&D, &&X, 0, &&A, &&C };
			A: q++; GO(t); B: q ^= 3; if (q & 1) goto D; if (q & 2) goto C; GO(t); C: q *= 3; GO(t); D: q -= 5; GO(t); X: return; }`, 5, 2},
		{"changed by a call", `N void set(void *const **p, void *const *v, int k) { q++; if (k & 1) *p = v; }
			N long f(const unsigned char *pc, long a, int k) { static void *const tA[] = { &&A, &&B, &&X }, *const tB[] = { &&C, &&D, &&X }; void *const *tab = tA; set(&tab, tB, k);
			GO(tab); A: a += q; GO(tab); B: a ^= 3; q++; if (a & 1) goto D; if (a & 2) goto C; GO(tab); C: a *= 3; GO(tab); D: a -= q * 5; q += 2; GO(tab); X: return a; }`, 5, 7},
		{"changed from behind", `struct vm { const int *tab; long n; }; N void set(long *n, const int *v, int k) { q++; if (k & 1) ((struct vm *)((char *)n - 8))->tab = v; }
			N long f(const unsigned char *pc, long a, int k) { static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A }, tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
			struct vm v; v.tab = tA; v.n = k; set(&v.n, tB, k); const int *tab = v.tab; OFFSET: goto *(&&A + tab[*pc++ & 3]); A: a += q; goto OFFSET; B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; goto OFFSET; C: a *= 3; goto OFFSET; D: a -= q * 5; q += 2; goto OFFSET; X: return a; }`, 5, 0},
		{"filled anew", `N long f(const unsigned char *pc, long a, int k) { static int t[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&A - &&A }; static const int u[] = { &&A - &&A, &&D - &&A, &&B - &&A };
			if (k) t[3] = u[k & 1]; OFF(t); A: a += q; OFF(t); B: a ^= 3; q++; if (a & 1) goto D; OFF(t); D: a -= q * 5; q += 2; OFF(t); X: return a; }`, 4, 0},
		{"filled from distances", `N long f(const unsigned char *pc, long a, int k) { static void *t[] = { &&A, &&B, &&X, &&A }; static const int u[] = { &&C - &&A, &&D - &&A };
			if (k) t[3] = &&A + u[k & 1]; GO(t); A: a += q; GO(t); B: a ^= 3; q++; if (a & 1) goto D; if (a & 2) goto C; GO(t); C: a *= 3; GO(t); D: a -= q * 5; q += 2; GO(t); X: return a; }`, 5, 0},
		{"long gap", `N long f(const unsigned short *pc, long a) { static const int t[1024] = { [0 ... 1023] = -1, [1] = &&A - &&A, [2] = &&B - &&A, [3] = &&X - &&A, [1000] = &&D - &&A };
			OFFSET: goto *(&&A + t[*pc++ & 1023]); A: a += q; goto OFFSET; B: a ^= 3; q++; if (a & 1) goto D; goto OFFSET; D: a -= q * 5; q += 2; goto OFFSET; X: return a; }`, 4, 7},
		{"states and characters", `N long f(const unsigned char *s, long a) { static const int t[4][256] = { [0 ... 3] = { [0 ... 255] = -1 }, [0]['a'] = &&A - &&A, [0]['b'] = &&B - &&A, [0][0] = &&X - &&A, [3][255] = &&D - &&A };
			unsigned st = 0; NEXT: goto *(&&A + t[st & 3][*s++]); A: a += q; goto NEXT; B: a ^= 3; q++; st = 3; goto NEXT; D: a -= q * 5; q += 2; st = 0; goto NEXT; X: return a; }`, 4, 7},
		{"more entries than are read", `N long f(const unsigned short *pc, long a) { static const int t[65536] = { [0 ... 65535] = &&X - &&A, [1] = &&A - &&A, [2] = &&B - &&A, [8000] = &&D - &&A };
			OFFSET: goto *(&&A + t[*pc++]); A: a += q; goto OFFSET; B: a ^= 3; q++; if (a & 1) goto D; goto OFFSET; D: a -= q * 5; q += 2; goto OFFSET; X: return a; }`, 4, 0},
		{"numbers behind", `N long f(const unsigned char *pc, long a) { static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&D - &&A, &&X - &&A }, n[] = {` + each(200, "-1, $,") + `};
			OFF(t); A: a += n[*pc++]; OFF(t); B: a ^= 3; q++; OFF(t); C: a *= 3; OFF(t); D: a -= q * 5; q += 2; OFF(t); X: return a; }`, 5, 7},
		{"changed by an index", `N long f(const unsigned char *pc, long a, int k) { static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A }; static const char pad[3000] = { 1 }; static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
			const int *tabs[2]; tabs[0] = tA; tabs[1] = tA; q += pad[k]; if (k) q += 5; tabs[k & 1] = tB; goto *(&&A + tabs[0][*pc++ & 3]);
			A: a += q; return a; B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a; C: a *= 3; return a; D: a -= q * 5; q += 2; return a; X: return a; }`, 5, 0},
		{"copied over, 16 bytes at a time", `struct vm { const int *tab; long n; }; const struct vm *volatile other;
			N long f(const unsigned char *pc, long a, int k) { static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A }; static const char pad[3000] = { 1 }; static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
			static const struct vm vB = { tB, 3 }; struct vm v; v.tab = tA; v.n = k; __asm__("" : "+m"(v)); q += pad[k]; other = &vB; v = *other; __asm__("" : "+m"(v)); goto *(&&A + v.tab[*pc++ & 3]);
			A: a += q; return a; B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a; C: a *= 3; return a; D: a -= q * 5; q += 2; return a; X: return a; }`, 5, 0},
		{"copied over, 64 bytes at a time", `struct vm { const int *tab; long n[7]; } g; const struct vm *volatile other;
			__attribute__((target("avx512f,prefer-vector-width=512"))) N long f(const unsigned char *pc, long a, int k) { static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A }; static const char pad[3000] = { 1 }; static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
			static const struct vm vB = { tB, 3 }; q += pad[k]; other = &vB; g.tab = tA; g = *other; goto *(&&A + g.tab[*pc++ & 3]);
			A: a += q; return a; B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a; C: a *= 3; return a; D: a -= q * 5; q += 2; return a; X: return a; }`, 5, 0},
		{"in records", `N long f(const unsigned char *pc, long a) { static const struct { const char *name; void *l; int length; } t[] = { { "a", &&A, 1 }, { "b", &&B, 2 }, { "d", &&D, 1 }, { "x", &&X, 1 } };
			goto *t[*pc++].l; A: a += q; goto *t[*pc++].l; B: a ^= 3; q++; if (a & 1) goto D; goto *t[*pc++].l; D: a -= q * 5; q += 2; goto *t[*pc++].l; X: return a; }`, 4, 5},
		{"loaded before a loop", `long g[64]; N long h(long a, long b) { return a ^ b; }
			N long f(unsigned a, unsigned b) { unsigned x = a, z = 32; for (int i = 5; i > 0; i--) { static void *const t[] = { &&A, &&B, &&C }; unsigned c = g[b & 63]; int w = 0; goto *t[c % 3];
			A: x += g[(b | x) & 63]; if (w++ < 2 && q-- > 0) { c = c * 5 + b; goto *t[c % 3]; } goto E; B: x += z; if (w++ < 4 && q-- > 0) { c = c * 5 + z; goto *t[c % 3]; } goto E;
			C: x += g[b & 63]; if (w++ < 2 && q-- > 0) { c = c * 5 + 175; goto *t[c % 3]; } goto E; E: z ^= h(b / 12, 252); } return x + z; }`, 3, 7},
		{"packed", `N long f(const unsigned char *pc, long a) { static const struct __attribute__((packed)) { char c; void *l; } t[] = { { 1, &&A }, { 2, &&B }, { 3, &&D }, { 4, &&X } };
			goto *t[*pc++].l; A: a += q; goto *t[*pc++].l; B: a ^= 3; q++; if (a & 1) goto D; goto *t[*pc++].l; D: a -= q * 5; q += 2; goto *t[*pc++].l; X: return a; }`, 4, 1},
		{"kept elsewhere", `struct vm { void *resume; const unsigned char *pc; };
			N long f(struct vm *v, long a) { static const int t[] = { &&A - &&A, &&B - &&A, &&D - &&A, &&X - &&A }; const unsigned char *pc = v->pc; if (v->resume) goto *v->resume;
			OFF(t); A: a += q; OFF(t); B: a ^= 3; q++; if (a & 1) goto D; OFF(t); D: a -= q * 5; q += 2; v->resume = &&A + t[*pc++]; v->pc = pc; return a; X: v->resume = 0; return a; }`, 4, 0},
		{"full behind another", `N long f(long a, unsigned long x, unsigned char c) { ` + `static void *const t1[] = {` + each(40, "&&l$,") + `}, *const t2[] = {` + each(256, "&&m$,") + `}; goto *t1[x];` +
			each(40, "l$: a += q * $; q++; goto next;") + `next: goto *t2[c];` + each(256, "m$: a ^= q + $; q += 2; goto end;") + `end: return a * 7; }`, 40, 7},
		{"from far below nought", `N long f(long a, long x) { ` + `static const int t[] = {` + each(46, "&&l$ - &&l30,") + `}; goto *(&&l30 + t[x + 20]); ` + each(46, "l$: a += q; return a * $;") + `}`, 46, 7},
		{"two of distances", `N long f(long a, unsigned char *p) { ` + `static const int t1[] = {` + each(256, "&&l$ - &&l30,") + `}, t2[] = {` + each(256, "&&m$ - &&l30,") + `}; goto *(&&l30 + t1[*p++]); ` +
			each(256, "l$: a += q * $; q++; goto next;") + `next: goto *(&&l30 + t2[*p++]);` + each(256, "m$: a ^= q + $; q += 2; goto end;") + `end: return a * 7; }`, 256, 7},
	} {
		checkWhole(t, test.name, labels+test.source, test.ways, test.observed)
	}
}

// A bound may be one on what the index is made of, of memory that is another when it is read once more, or of a place in
// the frame that has been written since, though no call between seems to.
func TestBoundsOfWhatTheIndexWas(t *testing.T) {
	const minus = `switch (y) { case -3: a += q; break; case -2: a ^= q + 5; break; case -1: q += a; a += 3; break; case 0: a *= 3; q++; break; case 1: a -= q; break;
		case 2: a |= q; q ^= 7; break; case 3: q += 9 * a; break; case 4: a *= 7; break; default: __builtin_unreachable(); } return a * 7 + y; }`
	for _, test := range []struct {
		name, source string
		observed     int // of seven builds
	}{
		{"masked", `N long f(long a, unsigned x) { volatile long v = (long)(x & 7) - 3; long y = v; ` + minus, 7},
		{"compared", `N long f(long a, unsigned x) { if (x > 7) return a; volatile long v = (long)x - 3; long y = v; ` + minus, 7},
		{"of a char", `N long f(long a, unsigned x) { long y = (long)(x & 7) - 3; __asm__("" : "+r"(y)); ` + minus, 7},
		{"after setjmp", `#include <setjmp.h>
			jmp_buf jb; N void leave(void) { q++; if (q & 1) longjmp(jb, 1); }
			N long f(long a, unsigned v) { volatile unsigned x = v % 9; if (x > 6) return a; if (setjmp(jb)) { EIGHT(x) return a * 7; } x = (v + 3) & 7; leave(); return a + 1; }
			static const int ints[3] = { 5, 6, 7 };
			N void backwards(void) { for (const int *p = ints + 2; p >= ints; p--) { q += *p; __asm__ volatile(""); } }`, 7},
		{"after another setjmp", `__asm__(".type keep,@function\nkeep: .cfi_startproc\nmov %rbx,(%rdi)\nmov %rbp,8(%rdi)\nmov (%rsp),%rdx\nmov %rdx,16(%rdi)\nlea 8(%rsp),%rdx\nmov %rdx,24(%rdi)\nxor %eax,%eax\nret\n.cfi_endproc\n.size keep,.-keep");
			__attribute__((returns_twice)) int keep(void **); void *kept[4]; N void leave(void) { q++; }
			N long f(long a, unsigned v) { volatile unsigned x = v % 9; if (x > 6) return a; if (keep(kept)) { EIGHT(x) return a * 7; } x = (v + 3) & 7; leave(); return a + 1; }
			static const int ints[3] = { 5, 6, 7 };
			N void backwards(void) { for (const int *p = ints + 2; p >= ints; p--) { q += *p; __asm__ volatile(""); } }`, 7},
		{"after setjmp through a pointer", `#include <setjmp.h>
			jmp_buf jb; N void leave(void) { q++; if (q & 1) longjmp(jb, 1); }
			N long f(long a, unsigned v) { volatile unsigned x = v % 9; if (x > 6) return a; int (*volatile keep)(struct __jmp_buf_tag *) = _setjmp; if (keep(jb)) { EIGHT(x) return a * 7; } x = (v + 3) & 7; leave(); return a + 1; }
			static const int ints[3] = { 5, 6, 7 };
			N void backwards(void) { for (const int *p = ints + 2; p >= ints; p--) { q += *p; __asm__ volatile(""); } }`, 7},
		{"after setjmp that a tail jump leads to", `#include <setjmp.h>
			__asm__(".type keep,@function\nkeep: .cfi_startproc\njmp *%rsi\n.cfi_endproc\n.size keep,.-keep");
			__attribute__((returns_twice)) int keep(void *, void *); jmp_buf jb; N void leave(void) { q++; if (q & 1) longjmp(jb, 1); }
			N long f(long a, unsigned v) { volatile unsigned x = v % 9; if (x > 6) return a; if (keep(jb, _setjmp)) { EIGHT(x) return a * 7; } x = (v + 3) & 7; leave(); return a + 1; }
			static const int ints[3] = { 5, 6, 7 };
			N void backwards(void) { for (const int *p = ints + 2; p >= ints; p--) { q += *p; __asm__ volatile(""); } }`, 7},
		{"written by others", `static volatile unsigned state; N void change(unsigned v) { state = v; }
			N long f(long a) { if (state <= 6) { a += q; a ^= q; a += q; EIGHT(state) } return a * 7; }
			static const int ints[3] = { 5, 6, 7 };
			N void backwards(void) { for (const int *p = ints + 2; p >= ints; p--) { q += *p; __asm__ volatile(""); } }`, 7},
	} {
		checkWhole(t, test.name, eight+test.source, 8, test.observed)
	}
}

// checkWhole builds a program in several ways, and expects that switches of its routine f have no fewer ways than they
// have, or that the routine is left out, but in so many of the builds.
func checkWhole(t *testing.T, name, source string, ways, observed int) {
	t.Helper()
	isObserved := 0
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O1", "-no-pie", "-fno-pie"}, {"-O2", "-no-pie", "-fno-pie"}, {"-Os", "-no-pie", "-fno-pie"}} {
		r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "f")
		isUnsure := strings.HasPrefix(r.LeftOut, "unresolved indirect jump") || strings.Contains(r.LeftOut, "address taken")
		if n := fewest(r); r.LeftOut == "" && n < ways || r.LeftOut != "" && !isUnsure {
			t.Errorf("%s, %q: a switch of %d ways, want %d; left out: %q", name, flags, n, ways, r.LeftOut)
		} else if r.LeftOut == "" {
			isObserved++
		}
	}
	if isObserved != observed {
		t.Errorf("%s: observed in %d builds, want %d", name, isObserved, observed)
	}
}

// each repeats a text for the numbers below n, which it has in place of $.
func each(n int, text string) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(strings.ReplaceAll(text, "$", strconv.Itoa(i)))
	}
	return all.String()
}

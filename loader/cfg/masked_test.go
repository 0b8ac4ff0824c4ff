package cfg_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// What a mask leaves out of a table is never read: compilers fill such places with what they like.
func TestMaskedIndex(t *testing.T) {
	const source = `
		#define EVEN(name, index) __asm__(".globl " #name "\n.type " #name ",@function\n" #name ": .cfi_startproc\nlea (%rdi,%rdi),%eax\n" index "lea 9f(%rip),%rcx\n" \
			"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n" \
			"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n4: mov $4,%eax\nret\n" \
			"5: nop\n6: dec %edi\njnz 5b\n7: ret\n.cfi_endproc\n.size " #name ",.-" #name "\n" \
			".section .rodata\n.p2align 2\n9: .long 1b-9b, 5b-9b, 2b-9b, 6b-9b, 3b-9b, 0, 4b-9b\n.text\n");
		EVEN(masked, "and $6,%eax\n")
		EVEN(compared, "and $14,%eax\ncmp $6,%eax\nja 7f\n")`
	p := recoverFile(t, compile(t, source+callees, "-O1"))
	for _, symbol := range []string{"masked", "compared"} {
		r := routine(t, p, symbol)
		if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
			t.Errorf("%s: %d switches, want 1; left out: %q", symbol, n, r.LeftOut)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 4 {
				t.Errorf("%s: %d ways, want 4", symbol, len(bl.Succ))
			}
		}
	}
}

// The bits of a sum of bits are those of either: the entries that none makes lead to the routine's end, as compilers
// have it, where nothing is reached by any other.
func TestIndexOfTwoMasks(t *testing.T) {
	const source = `
		__asm__(".globl either\n.type either,@function\neither: .cfi_startproc\nmov %edi,%eax\nand $20,%eax\nand $1,%esi\nor %esi,%eax\nlea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
			"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n4: mov $4,%eax\nret\n"
			"5: mov $5,%eax\nret\n6: mov $6,%eax\nret\n7: mov $7,%eax\nret\n8: mov $8,%eax\nret\n10:\n.cfi_endproc\n.size either,.-either\n"
			".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b, 10b-9b, 10b-9b, 3b-9b, 4b-9b, 10b-9b, 10b-9b, 10b-9b, 10b-9b, 10b-9b\n"
			".long 10b-9b, 10b-9b, 10b-9b, 10b-9b, 10b-9b, 5b-9b, 6b-9b, 10b-9b, 10b-9b, 7b-9b, 8b-9b\n.text\n");`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O1")), "either")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Fatalf("%d switches, want 1; left out: %q", n, r.LeftOut)
	}
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 8 {
			t.Errorf("%d ways, want 8", len(bl.Succ))
		}
	}
}

// A table of which it is not known how long it is does not end at an entry that leads nowhere, where others behind
// it lead into the routine: who knows which are its own.
func TestTableWithHoles(t *testing.T) {
	const source = `
		__asm__(".globl holes\n.type holes,@function\nholes: .cfi_startproc\nlea (%rdi,%rsi),%eax\nlea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
			"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n10:\n.cfi_endproc\n.size holes,.-holes\n"
			".section .rodata\n.p2align 2\n9: .long HOLES 3b-9b\n.text\n");`
	for holes, entries := range map[string]string{"few": "1b-9b, 2b-9b, 0, 0,", "many to the end": "1b-9b, 2b-9b," + strings.Repeat("10b-9b,", 40)} {
		r := routine(t, recoverFile(t, compile(t, strings.ReplaceAll(source, "HOLES", entries)+callees, "-O1")), "holes")
		if !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("%s: left out: %q", holes, r.LeftOut)
		}
	}
}

// A comparison of a byte bounds no more than that byte.
func TestByteCompared(t *testing.T) {
	const source = `
		static int q;
		__attribute__((noinline)) int shifted(unsigned x, int y) {
			int r = y;
			if ((unsigned char)x > 2) return 3;
			switch (x >> 8) {
			case 0: r += 3; q++; break; case 1: r ^= q; break; case 2: q -= r; break; case 3: r = q / 3; break;
			case 4: r -= 7; q *= 3; break; case 5: r *= q; break; default: r += 99;
			}
			return r + q;
		}
		__asm__(".globl changed\n.type changed,@function\nchanged: .cfi_startproc\ncmp $2,%dil\nja 7f\nxor $1,%edi\nlea 9f(%rip),%rcx\n"
			"movslq (%rcx,%rdi,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
			"1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n3: mov $3,%eax\nret\n4: mov $4,%eax\nret\n5: mov $5,%eax\nret\n6: mov $6,%eax\nret\n7: ret\n.cfi_endproc\n.size changed,.-changed\n"
			".section .rodata\n.p2align 2\n9: .long 1b-9b, 2b-9b, 3b-9b, 4b-9b, 5b-9b, 6b-9b\n.text\n");`
	for _, level := range []string{"-O1", "-O2", "-O3"} {
		p := recoverFile(t, compile(t, source+callees, level))
		for _, symbol := range []string{"shifted", "changed"} {
			r := routine(t, p, symbol)
			if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
				t.Errorf("%s: %s: %d switches, want 1; left out: %q", level, symbol, n, r.LeftOut)
			}
			for b := range r.Blocks {
				if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 6 {
					t.Errorf("%s: %s: a switch has %d ways, want 6", level, symbol, len(bl.Succ))
				}
			}
		}
	}
}

// A table does not end where another jump of the routine has it begin.
func TestTableNamedInItsMiddle(t *testing.T) {
	const source = `
		static int q;
		__attribute__((noinline)) int middle(int x, int y, int k) {
			static void *const t[] = { &&a, &&b, &&c, &&d };
			if (k & 1) goto *t[x & 3]; else { q++; goto *(t + 2)[y & 1]; }
			a: y = y * 3; q += 2; b: y = y - 7; q ^= 3; c: y = y ^ 5; q *= 3; d: return y + y / 3 + q;
		}`
	r := routine(t, recoverFile(t, compile(t, source+callees, "-O2", "-no-pie", "-fno-pie")), "middle")
	if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{2, 4}) {
		t.Errorf("switches of %d ways, want 2 and 4; left out: %q", ways, r.LeftOut)
	}
}

// A label that a table has where no index leads is no way into a routine from elsewhere.
func TestLabelsInHoles(t *testing.T) {
	const source = `
		__attribute__((noinline)) int holes(int x, int y) {
			static void *const t[] = { &&a, &&b, &&c, &&d };
			goto *t[x & 2];
			a: y = y * 3; goto c; b: y = y / 7; goto d; c: y = y ^ 5; return y; d: return y % 11;
		}`
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compile(t, source+callees, flags...)), "holes"); r.LeftOut != "" {
			t.Errorf("%v: left out: %s", flags, r.LeftOut)
		}
	}
}

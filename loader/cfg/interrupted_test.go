package cfg_test

import (
	"strings"
	"testing"
)

// A probe in a hardware transaction ended it, so that programs took their fallback for ever; and
// where the kernel left a restartable sequence, the record had what was behind it.
func TestWhatProbesInterruptIsLeftOut(t *testing.T) {
	const transaction = `
#include <immintrin.h>
int g;
#define F __attribute__((noinline, noclone))
F void within(int k) { g += k; }
F void behind(int k) { g -= k; }
F void instead(int k) { g ^= k; }
F int begins(int k) {
	if (_xbegin() == _XBEGIN_STARTED) {
		within(k);
		if (k == 7) _xabort(1);
		_xend();
		behind(k);
		return 1;
	}
	instead(k);
	return 0;
}
int main(int c, char **v) { return begins(c); }`
	const sequence = `
int count;
__attribute__((noinline)) int restarts(int k) {
	__asm__ volatile(".pushsection __rseq_cs,\"aw\"\n.balign 32\n.long 0, 0\n.quad 1f, 2f-1f, 4f\n.popsection\n"
		"1: add $1,%0\n2: jmp 5f\n.long 0x53053053\n4: mov $100,%0\n5:\n" : "+r"(k));
	return k;
}
__attribute__((noinline)) int behind(int k) { return k ^ count; }
int main(int c, char **v) { return behind(restarts(c)); }`
	const assembly = beginEnd + `
__asm__(BEGIN(equal) "xbegin 1f\ncmp $-1,%eax\nje 2f\n1: call outside\nret\n2: call inside\nxend\nret\n" END(equal)
	BEGIN(unequal) "xbegin 1f\n1: cmp $-1,%eax\njne 2f\ncall inside\nxabort $3\ncall outside\n2: call outside\nret\n" END(unequal)
	BEGIN(other) "xbegin 1f\n1: cmp $-2,%eax\njne 2f\nret\n2: call unsure\nxend\nret\n" END(other)
	BEGIN(gives) "xbegin 1f\n1: cmp $-1,%eax\njne 2f\ncall dies\n2: ret\n" END(gives) BEGIN(dies) "ud2\n" END(dies)
	BEGIN(nests) "xbegin 1f\n1: cmp $-1,%eax\njne 2f\nxbegin 3f\n3: cmp $-1,%eax\njne 4f\nxend\n4: call inner\nxend\n2: ret\n" END(nests)
	BEGIN(joins) "xbegin 1f\nmov $-1,%eax\njmp 1f\n1: mov %edi,%ecx\ncmp $-1,%eax\njne 2f\ncall inside\nxend\nret\n2: call outside\nret\n" END(joins)
	BEGIN(inner) "mov $4,%eax\nret\n" END(inner)
	BEGIN(inside) "mov $1,%eax\nret\n" END(inside) BEGIN(outside) "mov $2,%eax\nret\n" END(outside) BEGIN(unsure) "mov $3,%eax\nret\n" END(unsure)
	BEGIN(starts) "mov %edi,%eax\n1: add $1,%eax\n2: ret\n" END(starts) BEGIN(resumes) "mov %edi,%eax\n4: add $2,%eax\nret\n" END(resumes)
	".section __rseq_cs,\"aw\"\n.p2align 5\n.long 0, 0\n.quad 1b, 2b-1b, 4b\n.text\n");
int nests(int), joins(int), equal(int), unequal(int), other(int), gives(int), starts(int), resumes(int);
int main(int c, char **v) { return nests(c) + joins(c) + equal(c) + unequal(c) + other(c) + gives(c) + starts(c) + resumes(c); }`
	const pointer = `
#include <immintrin.h>
int g;
#define F __attribute__((noinline, noclone))
F void deeper(int k) { g += k; }
F void within(int k) { deeper(k); g -= k; }
F void direct(int k) { g ^= k; }
void (*volatile by)(int) = within;
F int begins(int k) { if (_xbegin() == _XBEGIN_STARTED) { by(k); _xend(); return 1; } direct(k); return 0; }
int main(int c, char **v) { return begins(c); }`
	const inTransaction, inSequence = "may run in a hardware transaction at ", "has a restartable sequence at "
	for _, c := range []struct {
		source, flags string
		want          map[string]string
	}{
		{transaction, "-mrtm", map[string]string{"begins": inTransaction, "within": inTransaction, "behind": "", "instead": "", "main": ""}},
		{pointer, "-mrtm", map[string]string{"begins": inTransaction, "within": inTransaction, "deeper": inTransaction, "direct": ""}},
		{assembly, "-pie", map[string]string{
			"nests": inTransaction, "inner": inTransaction, "joins": inTransaction, "equal": inTransaction, "unequal": inTransaction, "other": inTransaction, "inside": inTransaction, "outside": "", "unsure": inTransaction, "gives": inTransaction, "dies": "",
			"starts": inSequence, "resumes": inSequence, "main": "",
		}},
		{sequence, "-pie", map[string]string{"restarts": inSequence, "behind": "", "main": ""}},
		{sequence, "-no-pie", map[string]string{"restarts": inSequence, "behind": "", "main": ""}},
	} {
		p := recoverFile(t, compile(t, c.source, "-O1", c.flags))
		for symbol, want := range c.want {
			if r := routine(t, p, symbol); !strings.HasPrefix(r.LeftOut, want) || want == "" && r.LeftOut != "" {
				t.Errorf("%s: %s: left out: %q, want %q", c.flags, symbol, r.LeftOut, want)
			}
		}
	}
}

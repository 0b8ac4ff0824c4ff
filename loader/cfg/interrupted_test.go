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
	const inTransaction, inSequence = "may run in a hardware transaction at ", "has a restartable sequence at "
	for _, c := range []struct {
		source, flags string
		want          map[string]string
	}{
		{transaction, "-mrtm", map[string]string{"begins": inTransaction, "within": inTransaction, "behind": "", "instead": "", "main": ""}},
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

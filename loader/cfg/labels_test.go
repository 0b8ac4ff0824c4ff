package cfg_test

import (
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
F void change(void **p) { if (sink & 1) *p = (char *)*p + sink; }
F int changed(unsigned n) {
	void *state = &&even; int r = 0;
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
int main(int c, char **v) { printf("%d\\n", variable(40) + changed(2) + rewritten((unsigned char *)"\\1\\2\\4\\9", c)); return 0; }
`

// A jump to what a variable was given leads to one of these labels, but where a call may have
// changed it. A table that can be written may hold any label of the routine.
func TestLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O1", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compile(t, pointers, flags...))
			for symbol, labels := range map[string]int{"variable": 3, "changed": 0, "rewritten": 3} {
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

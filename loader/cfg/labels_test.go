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
int main(void) { printf("%d\\n", variable(40) + changed(2)); return 0; }
`

// A jump to what a variable was given leads to one of these labels, but where a call may have
// changed it.
func TestLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O1", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compile(t, pointers, flags...))
			for symbol, labels := range map[string]int{"variable": 3, "changed": 0} {
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

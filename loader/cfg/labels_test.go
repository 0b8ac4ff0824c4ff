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
typedef union { void *label; long value; } cell;
#define NEXT goto *ip++->label
#define OPERATIONS NEXT; a: n++; NEXT; b: n *= 3; NEXT; c: n -= note(7); NEXT; d: n ^= ip++->value; NEXT; end: return n;
F int threaded(cell *ip, void **out) {
	int n = 0;
	if (out) { out[0] = &&a; out[1] = &&b; out[2] = &&c; out[3] = &&d; out[4] = &&end; return 0; }
	OPERATIONS
}
F int computed(cell *ip, void **out) {
	static const int off[] = { &&a-&&a, &&b-&&a, &&c-&&a, &&d-&&a, &&end-&&a }; int n = 0;
	if (out) { for (int i = 0; i < 5; i++) out[i] = (char *)&&a + off[i ^ zero]; return 0; }
	OPERATIONS
}
F int variable(unsigned n) {
	void *state = &&even; int r = 0;
	for (; n; n--) { goto *state; even: r += n; state = r & 4 ? &&odd : &&even; sink++; continue; odd: r ^= n << 3; state = n % 3 ? &&third : &&even; continue; third: r -= 7; state = &&even; }
	return r;
}
F void leave(void **buffer) { __builtin_longjmp(buffer, 1); }
F int jumper(cell *ip, void **out) {
	void *buffer[5]; int n = 0;
	if (__builtin_setjmp(buffer)) return 7;
	if (out) { out[0] = &&a; out[1] = &&b; out[2] = &&c; out[3] = &&d; out[4] = &&end; if (n) leave(buffer); note(out != 0); return 0; }
	OPERATIONS
}
int main(void) {
	void *labels[5]; int r = 0; int (*runs[])(cell *, void **) = { threaded, computed, jumper };
	for (int i = 0; i < 3; i++) {
		runs[i](0, labels);
		cell code[] = { {labels[0]}, {labels[1]}, {labels[3]}, {.value = 9}, {labels[2]}, {labels[4]} };
		r = r * 5 + runs[i](code, 0);
	}
	printf("%d\\n", r + variable(40));
	return 0;
}
`

// A jump through a pointer leads to the labels whose addresses are taken, where these are certain to be all, and nobody else may jump there.
func TestLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O1", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compile(t, pointers, flags...))
			for _, test := range []struct{ symbol, reason string }{
				{"threaded", ""}, {"variable", ""}, {"computed", "unresolved indirect jump at"}, {"jumper", "unresolved indirect jump at"},
			} {
				r := routine(t, p, test.symbol)
				if test.reason == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, test.reason) {
					t.Errorf("%s: left out: %q, want %q", test.symbol, r.LeftOut, test.reason)
				}
				if n := ends(r)[cfg.Unresolved]; (n > 0) != (test.reason != "") {
					t.Errorf("%s has %d unresolved jumps", test.symbol, n)
				}
			}
		})
	}
}

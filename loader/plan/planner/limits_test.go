package planner_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
)

// A routine of thousands of calls of setjmp took gigabytes, each call having all places behind the
// others to lead to.
func TestManyCallsThatReturnAgain(t *testing.T) {
	const source = "#include <setjmp.h>\njmp_buf b; int main(void) { int s = 0;\n"
	for calls, want := range map[int]bool{100: true, 1100: false} {
		p := planned(t, compile(t, source+strings.Repeat("s += setjmp(b);\n", calls)+"return s; }",
			"-O1"), planner.Options{})
		prove(t, p)
		main := slices.IndexFunc(p.Routines,
			func(r *plan.Routine) bool { return r.Symbol == "main" })
		if r := p.Routines[main]; r.Traced() != want {
			t.Errorf("with %d calls main is traced: %v, %s", calls, r.Traced(), r.LeftOut)
		}
	}
}

// Loops that count, thousands of them in one routine, took a time by the square of their number.
func TestManyLoopsThatCount(t *testing.T) {
	const loops, most = 1200, 1000
	p := planned(t, compile(t,
		"int main(void) {\n"+strings.Repeat(`for (int i = 0; i < 70; i++) asm volatile("nop");`+
			"\n", loops)+"return 0; }", "-O1"), planner.Options{})
	prove(t, p)
	if r := routine(t, p, "main"); r.LoopsCounted() > most || r.LoopsCounted() < most/2 {
		t.Errorf("%d loops are counted", r.LoopsCounted())
	}
}

// TestExactCounterWhereAnotherBegins: what a loop's register begins with is known, but nothing has
// it behind the loop; an event before the loop can decide its rounds by the limit.
func TestExactCounterWhereAnotherBegins(t *testing.T) {
	p := planned(t, compile(t, `
		__attribute__((noinline)) long fill(char *to, long bits, long *next) {
			long n = 0;
			if (bits > 12)
				return -1;
			asm volatile("mov $1, %%r8d; mov %1, %%rcx; shl %%cl, %%r8d; xor %%eax, %%eax\n"
				"movslq %%r8d, %%rcx; nop\n"
				"1: mov %%al, (%2,%%rax); add $1, %%rax; cmp %%rcx, %%rax; jne 1b\n"
				"mov (%3), %%rax"
				: "=&a"(n) : "r"(bits), "r"(to), "r"(next) : "rcx", "r8", "cc", "memory");
			return n > 3 ? n * 2 : *next;
		}
		int main(int argc, char **argv) {
			char to[4096];
			long next = argc;
			return fill(to, argc, &next);
		}`, "-O1"), planner.Options{})
	prove(t, p)
	if r := routine(t, p, "fill"); r.LoopsCounted() != 1 {
		t.Errorf("%d loops are counted", r.LoopsCounted())
	}
}

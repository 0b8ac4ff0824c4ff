package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// copies is a program in which both is called 100 times by name and 10 times by a pointer, and
// tiny, which is always inlined, by name alone.
const copies = `
#include <stdio.h>
static inline __attribute__((always_inline)) int tiny(int x) { return x % 3 ? x * 2 + 1 : x - 7; }
static inline int both(int x) { if (x & 4) return x * 3; return x + 5; }
__attribute__((noinline)) int calls(int x) { return x & 1 ? tiny(x) + both(x) : both(x + 1); }
int (*volatile pointer)(int) = both;
int main(void)
{
	long s = 0;
	for (int i = 0; i < 100; i++) {
		s += calls(i);
		if (i % 10 == 0)
			s += pointer(i);
	}
	printf("%ld\n", s);
	return 0;
}
`

// TestInlinedCopies: a count is that of all calls, or it is said which routines ran code of others
// that are not counted.
func TestInlinedCopies(t *testing.T) {
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
		t.Run(level, func(t *testing.T) {
			program := testenv.CompileC(t, copies, "-g", level)
			snapshot := filepath.Join(t.TempDir(), "x.wpp")
			if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 {
				t.Fatalf("exit %d: %s", status, errs)
			}
			out, errs, status := wpptrace("find", "both()", "--count", snapshot)
			calls := 110
			if strings.Contains(errs, "both is also inlined into calls: calls there are not "+
				"counted") {
				calls = 10
			}
			if want := fmt.Sprintf("%d occurrences of both() in 1 thread\n", calls); status != 0 ||
				out != want {
				t.Errorf("exit %d, %q, want %q: %s", status, out, want, errs)
			}
			const want = "tiny has no code of its own in the snapshot: it is inlined into calls, " +
				"where calls of it are not counted"
			for _, question := range [][]string{{"find", "tiny()"}, {"order", "tiny", "main"},
				{"context", "tiny"}, {"rules", "tiny before main"}, {"path", "tiny#0"}} {
				if out, errs, status := wpptrace(append(question, snapshot)...); status != 1 ||
					out != "" || !strings.Contains(errs, want) {
					t.Errorf("%q: exit %d, %q, no %q: %s", question, status, out, want, errs)
				}
			}
		})
	}
}

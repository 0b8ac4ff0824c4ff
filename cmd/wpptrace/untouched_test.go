package main

import (
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// computedGoto jumps through a table in read-only data, to where no probe may be: so the jump has
// one, which reads the table. DROP runs before each jump.
const computedGoto = `
	#include <sys/mman.h>
	static int sum;
	#define COUNT __asm__ volatile("lock incl %0" : "+m"(sum))
	__attribute__((noinline)) static void step(unsigned n) {
		static void *const to[] = {&&first, &&second, &&third};
		DROP;
		goto *to[n % 3];
	first:
		COUNT;
	second:
		COUNT;
	third:
		COUNT;
	}
	int main(void) {
		for (unsigned i = 0; i < 50; i++)
			step(i);
	}`

// TestNothingIsLostOfUntouchedTables: the process has not touched the page of a table yet when a
// hit before the first jump through it reads it. That hit was lost.
func TestNothingIsLostOfUntouchedTables(t *testing.T) {
	w := startTracer(t, "-q", "-o", "x.wpp", "--on-overflow", "stop", "--",
		testenv.CompileC(t, computedGoto, "-O2", "-no-pie", "-fno-pie", "-DDROP="))
	w.wait(0)
	checkRecording(t, w, "x.wpp", 100)
}

// TestLostWhereATableIsNotInMemory: a page that the process drops is not in memory at a hit. The
// message named a full ring buffer, signals and threads as the causes, and the event was said not
// to fit the program besides.
func TestLostWhereATableIsNotInMemory(t *testing.T) {
	path := testenv.CompileC(t, computedGoto, "-O2", "-no-pie", "-fno-pie",
		"-DDROP=madvise((void *)((long)to & -4096), 4096, MADV_DONTNEED)")
	w := startTracer(t, "-q", "-o", "x.wpp", "--on-overflow", "stop", "--", path)
	w.wait(0)
	const notInMemory = "where the kernel could not read what a jump of the program was about to " +
		"read, in a page that was not in memory (swapped out, or never touched before): record " +
		"again, or leave the routine out with -N"
	if line := lastLine(w.errs.String()); !strings.Contains(line, "lost: 50 events") ||
		!strings.Contains(line, notInMemory) || strings.Contains(line, "ring buffer") {
		t.Errorf("stderr ends %q", line)
	}
	if s := statOf(t, w, "x.wpp"); s.Lost != 50 || s.Anomalies != 0 {
		t.Errorf("%d events lost, %d anomalies; 50 and none are to be", s.Lost, s.Anomalies)
	}
}

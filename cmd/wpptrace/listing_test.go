package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wpptrace/query/report"
)

// counted is a program whose lines run in ways that are easily counted wrong: loops on one line and
// on several, recursion, a callback from a library, code that is inlined twice, and code that does
// not run. What is marked exact is what an optimizing compiler can neither merge nor leave out,
// and what gcc does not write twice.
const counted = `#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>

static volatile int sink;
static int table[64];
static jmp_buf back;

static inline int tiny(int x) {
	sink = x; // exact
	if (x % 3)
		return x * 2 + 1;
	return x - 7;
}

__attribute__((noinline)) static int sum(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) {
		s += tiny(table[i & 63]);
		if (s > 1000)
			sink = s -= 1000; // exact
		else if (s % 5 == 0)
			sink = 7; // exact
	}
	sink = 1;
	return s;
}

static int compare(const void *a, const void *b) {
	sink = 2; // exact
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int recurse(int n) {
	if (n < 2)
		return sink = n; // exact
	return recurse(n - 1) + recurse(n - 2);
}

__attribute__((noinline)) static void leave(int n) {
	if (n == 3)
		longjmp(back, 1);
	sink = n; // exact
}

__attribute__((noinline)) int unused(int x) {
	sink = x; // exact
	return x + 1;
}

int main(int argc, char **argv) {
	int n = argc > 1 ? atoi(argv[1]) : 10;
	for (int i = 0; i < 64; i++) table[i] = (i * 37) % 64;
	int total = 0;
	while (n-- > 0) {
		total += sum(n);
		switch (n & 3) {
		case 0:
			sink = total++; // exact
			break;
		case 1:
			total += tiny(n);
			/* fall through */
		default:
			sink = total ^= 5;
		}
	}
	do { sink = total /= 2; } while (total > 3);
	qsort(table, 64, sizeof *table, compare);
	if (setjmp(back) == 0) // returns twice, which gcov does not count
		for (int i = 0; i < 5; i++)
			leave(i);
	if (argc > 5)
		total = unused(total); // exact
	printf("%d %d\n", total, recurse(10));
	return 0;
}
`

// TestLinesAgreeWithGcov: of a program without optimization, each line ran as often as gcov counts;
// of an optimized one, each line whose code the compiler has to leave where it is.
func TestLinesAgreeWithGcov(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "prog.c"), []byte(counted), 0o600))
	must(t, os.Chmod(dir, 0o700))
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	command("gcc", "--coverage", "-o", "covered", "prog.c")
	command("./covered", "20")
	want := gcovCounts(t, command("gcov", "-t", "covered-prog.c"))
	source := strings.Split(counted, "\n")
	for _, optimize := range []string{"-O0", "-O1", "-O2", "-O3"} {
		command("gcc", "-g", optimize, "-o", "prog", "prog.c")
		snapshot := filepath.Join(dir, "x.wpp")
		if _, errs, status := wpptrace("-q", "-o", snapshot, "--", filepath.Join(dir, "prog"),
			"20"); status != 0 {
			t.Fatalf("exit %d: %s", status, errs)
		}
		got := lineCounts(t, filepath.Join(dir, "prog.c"), snapshot)
		compared := 0
		for line, n := range want {
			if optimize != "-O0" && !strings.HasSuffix(source[line-1], "// exact") ||
				notCompared.MatchString(source[line-1]) {
				continue
			}
			compared++
			// a routine that did not run is in no snapshot
			if count, has := got[line]; count != n || !has && n > 0 {
				t.Errorf("%s: line %d ran %d times (has code: %v), by gcov %d times: %s", optimize,
					line, count, has, n, source[line-1])
			}
		}
		if compared < 9 {
			t.Errorf("%s: only %d lines were compared", optimize, compared)
		}
	}
}

// notCompared are lines of which gcov says something else: labels have no code.
var notCompared = regexp.MustCompile(`^\s*(case \d+|default):$|gcov`)

// gcovCounts reads how often each line ran that has code of what gcov -t prints.
func gcovCounts(t *testing.T, text string) map[int]uint64 {
	t.Helper()
	counts := map[int]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+|#####)\*?: *(\d+):`).FindAllStringSubmatch(text,
		-1) {
		line, err := strconv.Atoi(m[2])
		must(t, err)
		counts[line], _ = strconv.ParseUint(m[1], 10, 64) // #####: 0
	}
	if len(counts) < 30 {
		t.Fatalf("gcov prints\n%s", text)
	}
	return counts
}

// lineCounts asks a snapshot how often the lines of a file ran.
func lineCounts(t *testing.T, file, snapshot string) map[int]uint64 {
	t.Helper()
	out, errs, status := wpptrace("hot", "--lines", file, "--json", snapshot)
	if status != 0 || errs != "" {
		t.Fatalf("exit %d: %s", status, errs)
	}
	var lines report.LinesJSON
	must(t, json.Unmarshal([]byte(out), &lines))
	counts := map[int]uint64{}
	for _, l := range lines.Lines {
		counts[l.Line] = l.Count
	}
	return counts
}

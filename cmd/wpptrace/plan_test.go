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

	"wpptrace/internal/interesting"
	"wpptrace/internal/testenv"
)

// goRemedy is what helps with a program of Go.
const goRemedy = ": perf record -g -p PID or go tool pprof show where its CPU time goes; --lib " +
	"traces C libraries that it calls\n"

// TestGoProgramIsRefused: of one that is at work it is printed where its CPU time goes.
func TestGoProgramIsRefused(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		testenv.Missing(t, err)
	}
	cmd := exec.Command("gofmt", "-l", filepath.Join(strings.TrimSpace(string(root)), "src"))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // some seconds' work
	if err := cmd.Start(); err != nil {
		testenv.Missing(t, err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	_, errs, status := wpptrace("-p", strconv.Itoa(cmd.Process.Pid), "-o",
		filepath.Join(t.TempDir(), "x.wpp"))
	if want := `^wpptrace: CPU time: [0-9.]+% gofmt.*\nwpptrace: .*it is a Go program.*` +
		regexp.QuoteMeta(goRemedy) + "$"; status != 1 ||
		!regexp.MustCompile(want).MatchString(errs) {
		t.Errorf("status %d: %s", status, errs)
	}
}

// A program that is all Go has no unwind information; the error says so.
func TestPlanOfGoProgram(t *testing.T) {
	path, err := exec.LookPath("gofmt")
	if err != nil {
		testenv.Missing(t, err)
	}
	_, errs, status := wpptrace("plan", path)
	if want := "wpptrace: recover routines of gofmt: no unwind information (.eh_frame): it is a " +
		"Go program, and what is written in Go cannot be traced" + goRemedy; status != 1 ||
		errs != want {
		t.Errorf("status %d, %q; want %q", status, errs, want)
	}
}

// That it cannot be traced is printed by check too.
func TestCheckOfGoProgram(t *testing.T) {
	cmd := exec.Command("gofmt") // which waits for what it is to format
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		testenv.Missing(t, err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	out, _, status := wpptrace("check", "-p", strconv.Itoa(cmd.Process.Pid))
	if status != 1 || !strings.Contains(out, "missing  unwind data      no unwind information "+
		"(.eh_frame): it is a Go program, and what is written in Go cannot be traced"+goRemedy) {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// Where much code is in no routine, the recording says so; start-up code and linkage
// stubs are not worth a line.
func TestCodeInNoRoutineIsReported(t *testing.T) {
	const code = `int main(void) { return 0; }
__asm__(".text\n.rept %s\nxor %%eax, %%eax\n.endr");`
	for _, c := range []struct {
		instructions string
		printed      bool
	}{{"100", false}, {"4000", true}} {
		program := testenv.CompileC(t,
			strings.NewReplacer("%s", c.instructions, "%%", "%").Replace(code),
			"-O1", "-s")
		_, errs, status := wpptrace("-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program)
		if printed := strings.Contains(errs, "%, are in no routine, as start-up code and what has "+
			"no unwind information: they are not traced\n"); status != 0 || printed != c.printed {
			t.Errorf("%s instructions: exit %d, printed %v:\n%s", c.instructions, status, printed,
				errs)
		}
	}
}

// What ran most in the recording that weights are of is left out where it needs single-stepped
// probes: that is printed.
func TestWeightsLeaveOutWhatRanMost(t *testing.T) {
	program := testenv.CompileC(t, `
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }
int main(void)
{
	int list[1000];
	unsigned s = 1;
	for (int i = 0; i < 1000; i++) list[i] = (s = s * 1103515245 + 12345) >> 8;
	for (int i = 0; i < 5; i++) qsort(list, 1000, sizeof *list, compare);
	return 0;
}`, "-O2", "-Wl,--build-id")
	dir := t.TempDir()
	record := func(file string, flags ...string) (printed string) {
		_, printed, status := wpptrace(append(flags, "-o", filepath.Join(dir, file), "--",
			program)...)
		if status != 0 {
			t.Fatalf("status %d, %s", status, printed)
		}
		return printed
	}
	warning :=
		regexp.MustCompile(`\d\d% of the instructions that ran in \S+, of what is to be traced, are in routines left out, most in compare: .*--complete`)
	if printed := record("first"); warning.MatchString(printed) {
		t.Errorf("printed %q without weights", printed)
	}
	weights := []string{"--weights", filepath.Join(dir, "first")}
	if printed := record("second", weights...); !warning.MatchString(printed) {
		t.Errorf("printed %q", printed)
	}
	if printed := record("third", append(weights, "--complete")...); warning.MatchString(printed) {
		t.Errorf("printed %q with --complete", printed)
	}
}

// A routine whose name is empty, as an unset variable's, is no answer for the whole program.
func TestPlanOfARoutineWithoutAName(t *testing.T) {
	out, errs, status := wpptrace("plan", "--routine", "", "/bin/true")
	if status != exitUsage || out != "" || !strings.Contains(errs,
		"--routine needs the NAME of a routine") {
		t.Errorf("exit %d: %s\n%s", status, errs, out)
	}
}

// TestPlanOfInterestingPaths records programs, and numbers what ran: hardly more counters than
// paths are needed in most routines, as in figure 16 of Vaswani, Nori and Chilimbi 2007.
func TestPlanOfInterestingPaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte(strings.Repeat("what gzip compresses, ", 500)), 0o600))
	for _, test := range []struct {
		program  string
		args     []string
		routines int // of 2 to 100 interesting paths, at least
	}{
		{"/usr/bin/bash", []string{"-c", `for ((i = 0; i < 20; i++)); do
			case $i in *3) a[i]=${i/1/x};; 1*) : "${a[@]}";; esac; done`}, 100},
		{"/usr/bin/gzip", []string{file}, 20},
		{"/usr/bin/sqlite3", []string{":memory:", "select 1, 'a'", ".schema"}, 10},
		{"/usr/bin/python3", []string{"-S", "-c", "print(sorted(str(i) for i in range(20)))"}, 500},
	} {
		t.Run(filepath.Base(test.program), func(t *testing.T) {
			if _, err := os.Stat(test.program); err != nil {
				testenv.Missing(t, err)
			}
			snapshot := filepath.Join(t.TempDir(), "x.wpp")
			if _, errs, status := wpptrace(append([]string{"-q", "-o", snapshot, "--",
				test.program}, test.args...)...); status != 0 {
				t.Fatalf("status %d, %s", status, errs)
			}
			out, errs, status := wpptrace("plan", "--interesting", snapshot, "--json", test.program)
			var got interesting.Report
			if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 {
				t.Fatalf("status %d, %v: %s", status, err, errs)
			}
			t.Logf("at most 1.5 in %d of %d routines, median %.3f", got.Compact, got.Some, *got.Median)
			if got.Unknown != 0 || got.Some < test.routines || got.Compact*10 < got.Some*9 ||
				*got.Median > 1.1 {
				t.Errorf("%d paths unknown; %d of %d routines, median %v", got.Unknown, got.Compact,
					got.Some, *got.Median)
			}
			out, errs, status = wpptrace("plan", "--interesting", snapshot, "--hot", "7",
				test.program)
			if status != 0 || !strings.Contains(out, "\ninteresting     7 paths of ") {
				t.Errorf("status %d, %s\n%s", status, out, errs)
			}
			_, errs, status = wpptrace("plan", "--interesting", snapshot, "/bin/true")
			if want := "wpptrace: plan true: find the paths of " + snapshot + ": that is a " +
				"recording of another build: record this one, or leave --interesting out\n"; status !=
				1 || errs != want {
				t.Errorf("status %d, %q; want %q", status, errs, want)
			}
		})
	}
}

func TestFlagsOfInterestingPaths(t *testing.T) {
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--interesting", "x.wpp", "--routine", "main"}, "are two questions"},
		{[]string{"--interesting", "x.wpp", "--verify"}, "go with none of --canary"},
		{[]string{"--hot", "3"}, "--hot needs --interesting SNAPSHOT"},
		{[]string{"--hot", "-3", "--interesting", "x.wpp"}, "--hot -3 is below 0"},
		{[]string{"--interesting", "x.wpp", "--dot"}, "--dot needs --routine NAME"},
		{[]string{"--interesting", ""}, "--interesting needs a SNAPSHOT"},
		{[]string{"--others", "count"}, "--others needs --interesting SNAPSHOT"},
		{[]string{"--others", "all", "--interesting", "x.wpp"}, "count or ignore expected"},
	} {
		out, errs, status := wpptrace(append(append([]string{"plan"}, test.flags...), "/bin/true")...)
		if status != exitUsage || out != "" || !strings.Contains(errs, test.want) {
			t.Errorf("%q: status %d: %s\n%s", test.flags, status, errs, out)
		}
	}
}

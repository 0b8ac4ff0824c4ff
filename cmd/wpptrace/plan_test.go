package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/figures"
	"wpptrace/query/report"
)

// However long names are, lines are no wider than tables, and reasons are whole.
func TestPlanFits(t *testing.T) {
	long := "std::vector<" + strings.Repeat("std::pair<int, ", 20) + ">::push_back(\x1b[2J)"
	reasons := []string{"", "no unwind information",
		"two silent ways to the block at 55b68f, and no place for a probe on them"}
	r := &planReport{Go: true, figures: &figures.Figures{}}
	for _, name := range []string{"f", long} {
		for _, reason := range reasons {
			r.routines = append(r.routines,
				&plan.Routine{Routine: &cfg.Routine{Name: name, Addr: 0x55b670}, LeftOut: reason})
			r.figures.ProbesOf, r.figures.PathsOf = append(r.figures.ProbesOf,
				0), append(r.figures.PathsOf, 1)
			if reason != "" {
				r.LeftOut = append(r.LeftOut, leftOut{Reason: reason, Routines: 1, Example: name})
			}
		}
	}
	var out strings.Builder
	if err := r.write(&out, true); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > report.TableColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, reason := range reasons[1:] {
		if n := strings.Count(out.String(), reason); n != 4 {
			t.Errorf("%q stands there %d times, not 4:\n%s", reason, n, out.String())
		}
	}
	if !strings.Contains(out.String(), "\n                "+goProgram+"\n") {
		t.Errorf("not a word of Go:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "  std::vector<std::...:push_back(?[2J): no unwind "+
		"information\n") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}

// A plan with a fault is reported, its ways whole, and an error.
func TestPlanWithFaults(t *testing.T) {
	proven := false
	r := &planReport{Program: "prog", Verified: &proven,
		Faults: []string{"f\x1b at 4010: two silent ways: " + strings.Repeat("4010 -> ",
			40) + "end"}}
	var out strings.Builder
	if err := r.write(&out, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "not verified    1 fault\n") || strings.Count(out.String(),
		"4010 -> ") != 40 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
	if err := r.unproven(); err == nil || !strings.Contains(err.Error(),
		"verify the plan of prog: 1 fault: ") {
		t.Errorf("error %v", err)
	}
	r.Faults = append(r.Faults, "g at 4020: a silent circle")
	if err := r.unproven(); err == nil || !strings.Contains(err.Error(),
		"verify the plan of prog: 2 faults: ") {
		t.Errorf("error %v", err)
	}
	if err := (&planReport{}).unproven(); err != nil {
		t.Errorf("a plan without faults: %v", err)
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
		"Go program, and what is written in Go cannot be traced\n"; status != 1 || errs != want {
		t.Errorf("status %d, %q; want %q", status, errs, want)
	}
}

// That it cannot be traced is told by check too.
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
		"(.eh_frame): it is a Go program, and what is written in Go cannot be traced\n") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// A plan of which too many hits are single-stepped is warned of with the routine that makes most of
// them.
func TestSteppedIsWarnedOf(t *testing.T) {
	most := &plan.Routine{Routine: &cfg.Routine{ID: 1, Name: "two"}}
	var out strings.Builder
	r := &planReport{stepped: 0.1, mostStepped: most}
	if err := r.write(&out, false); err != nil {
		t.Fatal(err)
	}
	if want := "warning         10% of the expected hits are single-stepped, and slow, most in\n " +
		"               two: -N leaves it out\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// Of code that nothing tells of, and that is much, the recording says so; start-up code and linkage
// stubs are not worth a word.
func TestCodeInNoRoutineIsToldOf(t *testing.T) {
	const code = `int main(void) { return 0; }
__asm__(".text\n.rept %s\nxor %%eax, %%eax\n.endr");`
	for _, c := range []struct {
		instructions string
		told         bool
	}{{"100", false}, {"4000", true}} {
		program := compileC(t, strings.NewReplacer("%s", c.instructions, "%%", "%").Replace(code),
			"-O1", "-s")
		_, errs, status := wpptrace("-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program)
		if told := strings.Contains(errs, "%, are in no routine, as start-up code and what has "+
			"no unwind information: they are not traced\n"); status != 0 || told != c.told {
			t.Errorf("%s instructions: exit %d, told %v:\n%s", c.instructions, status, told, errs)
		}
	}
}

// What ran most in the recording that weights are of is left out where it needs single-stepped
// probes: that is told.
func TestWeightsLeaveOutWhatRanMost(t *testing.T) {
	program := compileC(t, `
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
	record := func(file string, flags ...string) (told string) {
		_, told, status := wpptrace(append(flags, "-o", filepath.Join(dir, file), "--", program)...)
		if status != 0 {
			t.Fatalf("status %d, %s", status, told)
		}
		return told
	}
	warning :=
		regexp.MustCompile(`\d\d% of the instructions that ran in \S+, of what is to be traced, are in routines left out, most in compare: .*--complete`)
	if told := record("first"); warning.MatchString(told) {
		t.Errorf("told %q without weights", told)
	}
	weights := []string{"--weights", filepath.Join(dir, "first")}
	if told := record("second", weights...); !warning.MatchString(told) {
		t.Errorf("told %q", told)
	}
	if told := record("third", append(weights, "--complete")...); warning.MatchString(told) {
		t.Errorf("told %q with --complete", told)
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
